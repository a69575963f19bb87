"""Results that other tools wrote: one module per format, and the directory that they become.

An imported directory holds ``results.parquet`` in our columns and ``import.json``. What a source never recorded is null
there. Blocks above all are never made up: ``pairing`` pairs by date, and says so.
"""

from gpubench.importers import (
    column_map,
    cudf_polars,
    dask_bench,
    dask_cuda,
    draco_csv,
    mlflow_files,
    nccl_tests,
    nightly,
    osu,
    parsl_perf,
    rapidsmpf,
    ucx_perftest,
    ucxx_send_recv,
)
from gpubench.importers.base import Format

FORMATS: dict[str, Format] = {
    "dask-cuda": dask_cuda.FORMAT,
    "draco-csv": draco_csv.FORMAT,
    "nightly": nightly.FORMAT,
    "parsl-perf": parsl_perf.FORMAT,
    "mlflow": mlflow_files.FORMAT,
    "dask-bench": dask_bench.FORMAT,
    "osu": osu.FORMAT,
    "ucx-perftest": ucx_perftest.FORMAT,
    "ucxx": ucxx_send_recv.FORMAT,
    "nccl-tests": nccl_tests.FORMAT,
    "cudf-polars": cudf_polars.FORMAT,
    "rapidsmpf": rapidsmpf.FORMAT,
    "table": column_map.FORMAT,
}
"""By the name that ``results import`` takes."""
