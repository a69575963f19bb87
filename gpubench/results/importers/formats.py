"""The formats that are read, by name. In a separate module, so that reading an import doesn't import any of them."""

from gpubench.results.importers import column_map, dask_cuda, draco_csv, nightly, parsl_perf
from gpubench.results.importers.base import Format

FORMATS: dict[str, Format] = {
    "dask-cuda": dask_cuda.FORMAT,
    "draco-csv": draco_csv.FORMAT,
    "nightly": nightly.FORMAT,
    "parsl-perf": parsl_perf.PARSL_PERF,
    "mlflow": parsl_perf.MLFLOW,
    "table": column_map.FORMAT,
}
"""By the name that ``results import`` takes."""
