"""A suite: workloads with parameters, and how often each is timed."""

import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pydantic

from gpubench.errors import GpubenchError, UsageError, joined
from gpubench.model.base import Name, Settings, TomlSource, between, nearest
from gpubench.model.bounds import MOST_REPS
from gpubench.model.own_workload import OwnWorkload
from gpubench.model.quantities import Fraction, parse_bytes, parse_fraction, parse_seconds, spell_bytes
from gpubench.spec import WorkloadSpec
from gpubench.workloads.catalogue import CATALOGUE, Param, Workload, described
from gpubench.workloads.catalogue.own import is_own, shown

MOST_COUNT = 2**53
"""What JSON and floats hold exactly."""


class SuiteEntry(Settings):
    """One workload of a suite; unset keys get the value of the suite or of the catalogue."""

    name: str = ""
    """Workload, as ``gpubench suites list`` names it, or the name of an installed package's entry point."""
    file: str = ""
    """Instead of ``name``: a workload of your own, ``"FILE.py:NAME"``. A relative path starts at the suite's folder."""
    backend: str = "dask"
    """Which of the workload's back-ends measures."""
    reps: Annotated[int, between(1, MOST_REPS)] | None = None
    """Timed repetitions in each run. Unset: the suite's ``reps``."""
    warmup: Annotated[int, between(0, MOST_REPS)] | None = None
    """Repetitions before the first timed one. Unset: the suite's ``warmup``."""
    params: dict[str, Any] = pydantic.Field(default_factory=dict)
    """Parameters; ``gpubench suites list NAME`` lists those of a workload with their defaults."""


class Suite(Settings):
    """A list of workloads as ``suites/<name>.toml`` describes it.

    The docstring below a key is its documentation, as in ``gpubench/model/site.py``.
    """

    name: Name
    """Name of the suite; the name of its file is usual."""
    description: str = ""
    """Description in one line."""
    first_pass: bool = False
    """``bench`` first runs the baseline once, and chooses repetitions that fill the budget. ``reps`` of the suite and
    of its workloads then count only where there is no first pass."""
    margin: Fraction | None = None
    """Differences up to this count as none. Unset: the site's ``defaults.margin``."""
    reps: Annotated[int, between(1, MOST_REPS)] = 6
    """Timed repetitions of each workload in each run."""
    warmup: Annotated[int, between(0, MOST_REPS)] = 1
    """Repetitions before the first timed one; they are stored, marked, and never used."""
    workload: list[SuiteEntry] = pydantic.Field(min_length=1)
    """The workloads, each a table ``[[workload]]``."""

    def resolve(
        self,
        source: str | TomlSource,
        *,
        reps: int | None,
        timeout_s: float,
        own: Mapping[str, OwnWorkload] = types.MappingProxyType({}),
    ) -> list[WorkloadSpec]:
        """Every workload with complete, plain parameters; ``reps`` given by the user beats the file's.

        ``own`` are the workloads of the user's files, by what the entries call them.

        Raises:
            UsageError: a workload, backend or parameter that doesn't exist, a value that doesn't fit, an entry twice.
        """
        file = source if isinstance(source, TomlSource) else TomlSource(source)
        resolved: dict[str, WorkloadSpec] = {}
        faults: list[GpubenchError] = []
        for number, entry in enumerate(self.workload):
            place = f"workload.{number}"
            try:
                name, backend, params = _entry(entry, file, place, own.get(entry.file or entry.name))
                spec = WorkloadSpec(
                    name=name,
                    backend=backend,
                    params=params,
                    reps=reps or entry.reps or self.reps,
                    warmup=self.warmup if entry.warmup is None else entry.warmup,
                    timeout_s=timeout_s,
                )
                if resolved.setdefault(spec.params_id, spec) is not spec:
                    what = f"workload '{name}' is listed twice with the same parameters"
                    raise UsageError(f"{file.at(place)}: {what}")
            except UsageError as fault:
                faults.append(fault)
        if faults:
            raise joined(faults)
        return list(resolved.values())


def _entry(entry: SuiteEntry, file: TomlSource, place: str, own: OwnWorkload | None) -> tuple[str, str, dict[str, Any]]:
    """Name, back-end and complete parameters of one entry; raises UsageError with everything that is wrong."""
    if bool(entry.name) == bool(entry.file):
        raise UsageError(f"{file.at(place)}: a workload has either 'name' or 'file'")
    if entry.file and own is None:
        raise UsageError(f"{file.at(f'{place}.file')}: '{entry.file}' names no Python file; write FILE.py:NAME")
    known = described(own.name) if own else CATALOGUE.get(entry.name)
    if known is None:
        raise UsageError(f"{file.at(f'{place}.name')}: no workload '{entry.name}'{nearest(entry.name, CATALOGUE)}")
    faults: list[GpubenchError] = []
    if entry.backend not in known.backends:
        choice = nearest(entry.backend, known.backends)
        faults.append(
            UsageError(f"{file.at(f'{place}.backend')}: {known.name} has no backend '{entry.backend}'{choice}")
        )
    params: dict[str, Any] = {key: param.default for key, param in known.params.items()}
    try:
        params |= own.complete(entry.params) if own else {}
    except ValueError as error:
        faults.append(UsageError(f"{file.at(f'{place}.params')}: {error}"))
    for key, value in () if own else entry.params.items():
        try:
            params[key] = _value(known, key, value)
        except ValueError as error:
            faults.append(UsageError(f"{file.at(f'{place}.params.{key}')}: {error}"))
    if faults:
        raise joined(faults)
    if fault := known.fault(entry.backend, params):
        raise UsageError(f"{file.at(place)}: {known.name}: {fault}")
    return known.name, entry.backend, params


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


def sizes_spelled(known: Workload, params: Mapping[str, Any]) -> str:
    """``size = 10MB, round_trips = 5``; of a user's own workload the plain values."""
    words = {name: spelled(param, params[name]) for name, param in known.params.items()}
    if is_own(known.name):
        words = {name: shown(name, value) for name, value in params.items()}
    return ", ".join(f"{name} = {word}" for name, word in words.items())


def _value(known: Workload, key: str, value: Any) -> Any:
    """The plain value of a parameter; raises ValueError with the whole message."""
    if key not in known.params:
        raise ValueError(f"{known.name} has no parameter '{key}'{nearest(key, known.params)}")
    param = known.params[key]
    try:
        return _READERS[param.kind](param, value)
    except ValueError as error:
        raise ValueError(f"{known.name}.{key} = {value!r}: {error}") from None


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


_READERS: Mapping[str, Callable[[Param, Any], Any]] = {
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
