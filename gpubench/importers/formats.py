"""The formats that are read, by name. In a separate module, so that reading an import doesn't import any of them."""

from gpubench.importers import (
    column_map,
    cudf_polars,
    dask_bench,
    dask_cuda,
    draco_csv,
    link_benchmarks,
    nightly,
    parsl_perf,
)
from gpubench.importers.base import Format

FORMATS: dict[str, Format] = {
    "dask-cuda": dask_cuda.FORMAT,
    "draco-csv": draco_csv.FORMAT,
    "nightly": nightly.FORMAT,
    "parsl-perf": parsl_perf.PARSL_PERF,
    "mlflow": parsl_perf.MLFLOW,
    "dask-bench": dask_bench.FORMAT,
    "osu": link_benchmarks.OSU,
    "ucx-perftest": link_benchmarks.UCX_PERFTEST,
    "ucxx": link_benchmarks.UCXX,
    "nccl-tests": link_benchmarks.NCCL_TESTS,
    "cudf-polars": cudf_polars.FORMAT,
    "rapidsmpf": link_benchmarks.RAPIDSMPF,
    "table": column_map.FORMAT,
}
"""By the name that ``results import`` takes."""
