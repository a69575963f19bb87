"""Everything that differs between CPU and GPU. The one file of the workloads that names cupy, cudf and rmm."""

import contextlib
import importlib.util
from typing import Any, Dict, List, Optional

from gpubench.node.workloads import dask_compat


def array_module(device: str) -> Any:
    if device == "gpu":
        import cupy

        return cupy
    import numpy as np

    return np


def frame_module(device: str) -> Any:
    if device == "gpu":
        import cudf

        return cudf
    import pandas as pd

    return pd


def host(device: str, values: Any) -> Any:
    """An array, series or scalar as a numpy array in main memory."""
    import numpy as np

    if device == "gpu":
        import cupy

        return cupy.asnumpy(values)
    return np.asarray(values)


def read_parquet(paths: List[str], device: str, columns: Optional[List[str]] = None) -> Any:
    """The lazy frame in Parquet files, all ``columns`` unless some are named."""
    if device == "gpu":
        import dask_cudf

        return dask_cudf.read_parquet(paths, columns=columns)
    import dask.dataframe

    return dask.dataframe.read_parquet(paths, columns=columns)


def synchronize() -> None:
    """Wait until this process's GPU has done what it was given."""
    import cupy

    cupy.cuda.Device().synchronize()


def on_bus() -> str:
    """Where the PCI bus has the GPU on which this process computes, ``0000:c1:00``; empty where CUDA can't say it."""
    place = ""
    with contextlib.suppress(Exception):
        import cupy

        runtime = cupy.cuda.runtime
        domain, bus, device = runtime.deviceGetPCIBusId(runtime.getDevice()).partition(".")[0].split(":")
        place = f"{int(domain, 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}"
    return place


def memory_pool(device: str) -> Dict[str, Any]:
    """What this process allocates GPU memory with, as it really is; empty on the CPU and in an image without RMM.

    ``resources``: RMM's memory resources from the outside in, by class; ``pool_bytes``: size of the pool among them, 0
    without one; ``arrays``: whether cupy allocates by ``rmm`` or by a pool of its own (``cupy``). Sources: RMM's API
    reference, ``rmm.mr`` and ``rmm.allocators.cupy``.
    """
    if device != "gpu" or importlib.util.find_spec("rmm") is None:
        return {}
    import rmm

    resources: List[str] = []
    pool_bytes = 0
    resource = rmm.mr.get_current_device_resource()
    while resource is not None:
        resources.append(type(resource).__name__)
        pool_bytes = int(resource.pool_size()) if hasattr(resource, "pool_size") else pool_bytes
        resource = getattr(resource, "upstream_mr", None)
    return {"resources": resources, "pool_bytes": pool_bytes, "arrays": _allocator_of_arrays()}


def _allocator_of_arrays() -> str:
    if importlib.util.find_spec("cupy") is None:
        return "none"
    import cupy

    return "rmm" if getattr(cupy.cuda.get_allocator(), "__name__", "") == RMM_ALLOCATOR else "cupy"


RMM_ALLOCATOR = "rmm_cupy_allocator"


def allocate_arrays_by_rmm() -> None:
    """Let cupy allocate by RMM's current resource; does nothing in a Python that lacks one of the two.

    Importing cuDF does so too (cudf/__init__.py:95@v22.12.00): without this a worker of dask-cuda before 25.08, which
    imports cuDF only for a workload of frames, would allocate arrays in one way before that workload and in another
    one after it.
    """
    if importlib.util.find_spec("rmm") is None or importlib.util.find_spec("cupy") is None:
        return
    import cupy

    try:
        from rmm.allocators.cupy import rmm_cupy_allocator
    except ImportError:  # in RMM before 23.02
        from rmm import rmm_cupy_allocator
    cupy.cuda.set_allocator(rmm_cupy_allocator)


_kept: List[Any] = []


def keep_memory_resource() -> None:
    """Before a library that sets a memory resource of its own is let loose in this worker: remember ours."""
    import rmm

    _kept[:] = [rmm.mr.get_current_device_resource()]


def restore_memory_resource() -> None:
    """Let this worker allocate as before ``keep_memory_resource``, as the next workload expects it."""
    import rmm

    for resource in _kept:
        rmm.mr.set_current_device_resource(resource)
    _kept.clear()
    allocate_arrays_by_rmm()


def synchronize_workers(client: Any, device: str) -> None:
    """Wait for the GPUs of all workers, on which a finished task may still run; nothing to do on the CPU."""
    if device == "gpu":
        client.run_on_scheduler(dask_compat.call_on_workers, synchronize)
