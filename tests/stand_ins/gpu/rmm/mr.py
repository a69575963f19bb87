from typing import Any, List


class CudaMemoryResource:
    pass


class PoolMemoryResource:
    def __init__(self, upstream: CudaMemoryResource, initial_pool_size: Any) -> None:
        self.upstream_mr = upstream
        self._size = int(initial_pool_size)

    def pool_size(self) -> int:
        return self._size


_current: List[Any] = [CudaMemoryResource()]


def get_current_device_resource() -> Any:
    return _current[0]


def set_current_device_resource(resource: Any) -> None:
    _current[0] = resource
