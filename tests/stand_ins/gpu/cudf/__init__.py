"""Stand-in for cuDF: pandas under its name. What cuDF lacks of pandas passes here."""

from typing import Any

import pandas as pd

__version__ = "0+stand-in"


def set_option(name: str, value: Any) -> None:
    """Of cuDF, not of pandas: dask-cuda sets ``spill`` and ``spill_stats``."""


def __getattr__(name: str) -> Any:
    return getattr(pd, name)
