"""Queries by polars: in this process, or by cudf-polars on the run's cluster. The one file that names either."""

from typing import Any, Mapping, Sequence, Tuple

import pandas as pd
import polars as pl

STREAMING = "streaming" if tuple(map(int, pl.__version__.split(".")[:2])) >= (1, 23) else None
"""The engine that cudf-polars' own benchmark takes on a CPU; older polars has no such word."""


def ask(sql: str, files: Mapping[str, Sequence[str]]) -> Any:
    """The lazy answer of one query over tables' files."""
    tables = {table: pl.scan_parquet(list(paths)) for table, paths in files.items()}
    return pl.SQLContext(tables).execute(sql, eager=False)


def collected(lazy: Any, engine: Any) -> pd.DataFrame:
    """The answer as a pandas frame; ``engine`` None: polars' default. Without ``to_pandas``, which needs pyarrow."""
    frame = lazy.collect(engine=engine) if engine else lazy.collect()
    return pd.DataFrame(frame.to_dict(as_series=False))


def cluster_engine(client: Any) -> Tuple[Any, str]:
    """cudf-polars' engine on a Dask cluster, and its version; raises ImportError.

    A query that it can't answer is an error: without ``raise_on_fail``, polars would answer it on this CPU. The site
    decides how many workers share a GPU, and ``dask cuda worker`` has bound each one's process to its GPU's cores.

    https://docs.rapids.ai/api/cudf/stable/cudf_polars/dask_engine/
    """
    import cudf_polars
    from cudf_polars.engine.dask import DaskEngine
    from cudf_polars.engine.hardware_binding import HardwareBindingPolicy

    options = {
        "raise_on_fail": True,
        "allow_gpu_sharing": True,
        "hardware_binding": HardwareBindingPolicy(enabled=False),
    }
    return DaskEngine(dask_client=client, engine_options=options), str(cudf_polars.__version__)
