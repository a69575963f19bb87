"""Stand-in for ``cuda.core``: dask-cuda 26.10 and distributed-ucxx 0.52 make a context on a GPU by it."""


class Device:
    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id

    def set_current(self) -> None:
        """Nothing: there is no GPU to make a context on."""
