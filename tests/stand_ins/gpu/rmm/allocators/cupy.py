def rmm_cupy_allocator(nbytes: int) -> None:
    """Never called: arrays are NumPy's."""
