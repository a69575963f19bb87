"""From run directories to one table of samples, and from that table to the input of the statistics."""

from gpubench.merge.family import Cell, cells, family
from gpubench.merge.samples import RunFiles
from gpubench.merge.table import COLUMNS, Merged, Read, merge, merge_directory, parquet, read_runs

__all__ = [
    "COLUMNS",
    "Cell",
    "Merged",
    "Read",
    "RunFiles",
    "cells",
    "family",
    "merge",
    "merge_directory",
    "parquet",
    "read_runs",
]
