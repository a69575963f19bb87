"""A known slowness: a setting of a variant makes every repetition longer, to see whether the verdict rule finds it."""

from typing import Mapping

SLOW = "GPUBENCH_SLOW"
"""Setting of a variant, like ``5%``."""


def slowness(settings: Mapping[str, str]) -> float:
    """The share that ``GPUBENCH_SLOW`` asks for, 0 where it isn't set.

    Raises:
        ValueError: it is no percentage.
    """
    text = settings.get(SLOW, "0%")
    try:
        share = float(text[:-1]) / 100
    except ValueError:
        share = -1.0
    if not text.endswith("%") or not 0 <= share <= 10:
        raise ValueError(f"{SLOW}={text} is no percentage up to 1000%")
    return share
