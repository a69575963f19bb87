"""Stand-in for dask-cuda: its ``worker`` command over ``dask worker``."""

__version__ = "0+stand-in"
