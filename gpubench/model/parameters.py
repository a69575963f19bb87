"""Values of a workload's parameters: from what a person writes to a plain value, and back."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from gpubench.model.base import nearest
from gpubench.model.quantities import parse_bytes, parse_fraction, parse_seconds, spell_bytes
from gpubench.node.workloads.catalogue import Param, Workload
from gpubench.node.workloads.catalogue.own import shown

MOST_COUNT = 2**53
"""What JSON and floats hold exactly."""


def spelled(param: Param, value: Any) -> str:
    """A plain value as a user would type it: ``64KiB``, ``30%``, ``true``, ``[10, 100]``."""
    match param.kind:
        case "size":
            return spell_bytes(value)
        case "duration":
            return f"{value:g}s"
        case "fraction":
            return f"{round(100 * value, 10):g}%"
        case "flag":
            return "true" if value else "false"
        case "number":
            return f"{value:g}"
    return str(value)


def sizes_spelled(workload: Workload | None, params: Mapping[str, Any]) -> str:
    """``size = 10MB, round_trips = 5``, without empty ones; of what ``workload`` doesn't describe the plain value."""
    kinds = workload.params if workload else {}
    texts = {
        name: spelled(kinds[name], value) if name in kinds else shown(name, value)
        for name, value in params.items()
        if value not in ("", [], {})
    }
    return ", ".join(f"{name} = {word}" for name, word in texts.items())


def plain_value(workload: Workload, key: str, value: Any) -> Any:
    """The plain value of a parameter; raises ValueError with the whole message."""
    param = workload.params.get(key)
    if param is None and workload.takes_any:
        if not _is_plain(value):
            raise ValueError(f"{key} = {value!r}: write a number, text, true, false, or lists and tables of them")
        return value
    if param is None:
        raise ValueError(f"{workload.name} has no parameter '{key}'{nearest(key, workload.params)}")
    try:
        return READERS[param.kind](param, value)
    except ValueError as error:
        raise ValueError(f"{workload.name}.{key} = {value!r}: {error}") from None


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold it."""
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def _checked(value: Any, holds: bool, message: str) -> Any:
    if not holds:
        raise ValueError(message)
    return value


def _with_unit(value: Any, example: str) -> str:
    return str(_checked(value, isinstance(value, str), f'a quantity needs its unit, as a string: "{example}"'))


def _text(_param: Param, value: Any) -> str:
    return str(_checked(value, isinstance(value, str), "write a string"))


def _count(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():  # 1e6
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("not a whole number ≥ 0")
    if value > MOST_COUNT:
        raise ValueError("more than anything can count")
    return value


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(_checked(value, is_number and 0 <= value <= MOST_COUNT, "not a number ≥ 0"))


READERS: Mapping[str, Callable[[Param, Any], Any]] = {
    "count": lambda _param, value: _count(value),
    "counts": lambda _param, value: [
        _count(item) for item in _checked(value, isinstance(value, list), "write a list: [10, 100]")
    ],
    "number": lambda _param, value: _number(value),
    "size": lambda _param, value: parse_bytes(_with_unit(value, "64KiB")),
    "duration": lambda _param, value: parse_seconds(_with_unit(value, "2m")),
    "fraction": lambda _param, value: parse_fraction(_with_unit(value, "30%")),
    "flag": lambda _param, value: _checked(value, isinstance(value, bool), "write true or false"),
    "choice": lambda param, value: _checked(value, value in param.choices, f"not one of {', '.join(param.choices)}"),
    "name": _text,
    "path": _text,
}
"""From what a suite says to a parameter's plain value, by the parameter's kind; each raises ValueError."""
