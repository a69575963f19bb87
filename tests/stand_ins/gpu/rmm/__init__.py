"""Stand-in for RMM: the resource that dask-cuda makes by ``reinitialize``, as ``rmm.mr`` says it; allocates nothing.

Names and keywords as in RMM's API reference. Where the real RMM is installed, what is missing here is the real one's:
the binding loads its compiled parts.
"""

from pkgutil import extend_path
from typing import Any, Optional

__path__ = extend_path(__path__, __name__)

from rmm import mr as mr

__version__ = "0+stand-in"


def reinitialize(  # noqa: PLR0917 - as the original has it
    pool_allocator: bool = False,
    managed_memory: bool = False,
    initial_pool_size: Optional[int] = None,
    maximum_pool_size: Optional[int] = None,
    devices: Any = 0,
    logging: bool = False,
    log_file_name: Optional[str] = None,
) -> None:
    """Make the current resource: a pool of so many bytes, without a size half of a GPU of 80 GB."""
    resource: Any = mr.CudaMemoryResource()
    if pool_allocator:
        resource = mr.PoolMemoryResource(resource, 40_000_000_000 if initial_pool_size is None else initial_pool_size)
    mr.set_current_device_resource(resource)
