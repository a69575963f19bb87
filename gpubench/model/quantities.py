"""Quantities carry units: ``"32GiB"``, ``"10m"``, ``"3%"``. GB and GiB differ; a bare number says nothing."""

import math
import re
from typing import Annotated, Any, Literal

import pydantic

from gpubench.model.text import shortened

_SIZES: dict[str, int] = {"B": 1} | {
    prefix + suffix: int(base**power)
    for suffix, base in (("B", 1000), ("iB", 1024))
    for power, prefix in enumerate("KMGTP", start=1)
}
_SIZES["kB"] = 1000
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
MOST_BYTES, MOST_SECONDS, MOST_FRACTION = 2**60, 366 * 86400.0, 10.0
"""What a person may write; records that gpubench wrote are read as they are."""
_ONE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def parse_bytes(text: str) -> int:
    """``"2GiB"`` → 2147483648. Raises ValueError."""
    match = _ONE.fullmatch(text)
    if not match or match[2] not in _SIZES:
        raise ValueError(f"'{text}' is not a size; write a number and a unit, like 512MiB or 2GB")
    return round(_within(float(match[1]) * _SIZES[match[2]], MOST_BYTES, text, "1 EiB, which no machine has"))


def parse_seconds(text: str) -> float:
    """``"1h30m"`` → 5400.0. Raises ValueError."""
    position, total = 0, 0.0
    while position < len(text):
        match = _ONE.match(text, position)
        if not match or match[2] not in _SECONDS:
            break
        total += float(match[1]) * _SECONDS[match[2]]
        position = match.end()
    if position < len(text) or not text.strip():
        raise ValueError(f"'{text}' is not a duration; write a number and a unit, like 90s, 10m or 1h30m")
    return _within(total, MOST_SECONDS, text, "a year, which no job may take")


def parse_fraction(text: str) -> float:
    """``"3%"`` → 0.03. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if not match:
        raise ValueError(f"'{text}' is not a percentage; write it like 3%")
    return _within(float(match[1]) / 100, MOST_FRACTION, text, "tenfold")


def _within(value: float, most: float, text: str, limit: str) -> float:
    if not value <= most:
        raise ValueError(f"'{shortened(text, 20)}' is more than {limit}")
    return value


def digits(value: float, count: int = 2) -> str:
    """So many significant digits, never as a power of ten: ``168.2`` → ``170``."""
    return f"{float(f'{value:.{count}g}'):.15g}"


def format_seconds(seconds: float) -> str:
    """``5400`` → ``1h30m``, ``75.4`` → ``1m15s``, ``3.21`` → ``3.2s``."""
    if not math.isfinite(seconds):
        return "unlimited"
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{secs:02d}s" if minutes else f"{secs}s"


def spell_bytes(count: int) -> str:
    """``65536`` → ``64KiB``: exact, in the largest unit that leaves a whole number."""
    return next(
        f"{count // size}{unit}"
        for unit, size in sorted(_SIZES.items(), key=lambda item: (-item[1], item[0]))
        if unit == "B" or (count >= size and count % size == 0)
    )


def format_bytes(count: float) -> str:
    """``2147483648`` → ``2.0 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


# In records that gpubench wrote itself (plan.json), quantities are plain numbers again.
def _plain_or(parse: Any) -> Any:
    def validate(value: Any, info: pydantic.ValidationInfo) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool) and (info.context or {}).get("plain"):
            return value
        if not isinstance(value, str):
            raise ValueError("a quantity needs its unit, as a string")
        return parse(value)

    return validate


def _as_typed(example: str, *others: str) -> pydantic.WithJsonSchema:
    """The JSON Schema of what a person writes: text."""
    return pydantic.WithJsonSchema({"type": "string", "examples": [example, *others]})


Bytes = Annotated[int, pydantic.BeforeValidator(_plain_or(parse_bytes)), _as_typed("512MiB", "2GB")]
Seconds = Annotated[float, pydantic.BeforeValidator(_plain_or(parse_seconds)), _as_typed("90s", "10m", "1h30m")]
Fraction = Annotated[float, pydantic.BeforeValidator(_plain_or(parse_fraction)), _as_typed("3%")]


MemoryPool = Annotated[
    int | Literal["none", "default"],
    pydantic.BeforeValidator(_plain_or(lambda text: text if text in ("none", "default") else parse_bytes(text))),
    _as_typed("8GB", "none", "default"),
]
