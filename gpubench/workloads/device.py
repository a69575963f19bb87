"""Everything that differs between CPU and GPU. The one file of the workloads that names cupy and cudf."""

from typing import Any


def array_module(device: str) -> Any:
    """``cupy`` or ``numpy``."""
    if device == "gpu":
        import cupy

        return cupy
    import numpy as np

    return np


def frame_module(device: str) -> Any:
    """``cudf`` or ``pandas``."""
    if device == "gpu":
        import cudf

        return cudf
    import pandas as pd

    return pd


def frames_of(device: str) -> Any:
    """Context in which Dask's readers make ``cudf`` or ``pandas`` frames."""
    import dask

    return dask.config.set({"dataframe.backend": "cudf" if device == "gpu" else "pandas"})


def synchronize() -> None:
    """Wait until this process's GPU has done what it was given."""
    import cupy

    cupy.cuda.Device().synchronize()


def synchronize_workers(client: Any, device: str) -> None:
    """Wait for the GPUs of all workers, on which a finished task may still run; nothing to do on the CPU."""
    if device == "gpu":
        client.run(synchronize)
