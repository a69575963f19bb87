"""Dask's own readers: frames of the stand-in for cudf are those of pandas."""

from typing import Any

import dask.dataframe


def read_parquet(paths: list[str], columns: list[str] | None = None) -> Any:
    return dask.dataframe.read_parquet(paths, columns=columns)
