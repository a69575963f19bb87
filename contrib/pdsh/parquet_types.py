"""Parquet files with types that pandas and cuDF compute with. The one file that names pyarrow."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet

from gpubench.node.workloads.parquet_files import is_numeric


def retyped(source: str, target: str) -> None:
    """Copy a file: decimals become float64, days nanoseconds since 1970, strings plain ones.

    What pandas holds as objects is slow, and what it was read from a decimal can't be multiplied by a float.
    """
    table = pa.parquet.read_table(source)
    fields = [pa.field(one.name, _plain(one.type)) for one in table.schema]
    pa.parquet.write_table(table.cast(pa.schema(fields)), target)


def _plain(kind: Any) -> Any:
    if pa.types.is_decimal(kind):
        return pa.float64()
    if pa.types.is_date(kind):
        return pa.timestamp("ns")
    return kind if is_numeric(kind) else pa.string()
