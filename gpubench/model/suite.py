"""A suite: workloads with parameters, and how often each is timed."""

import types
from collections.abc import Mapping
from typing import Annotated, Any

import pydantic

from gpubench.errors import GpubenchError, UsageError, joined
from gpubench.model.base import Name, Settings, TomlSource, between, nearest
from gpubench.model.bounds import MOST_REPS
from gpubench.model.own_workload import OwnWorkload
from gpubench.model.parameters import plain_value
from gpubench.model.quantities import Fraction
from gpubench.node.spec import WorkloadSpec
from gpubench.node.workloads.catalogue import CATALOGUE


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
    first_pass: bool | None = None
    """``bench`` first runs the baseline once, and chooses repetitions that fill the budget. ``reps`` of the suite and
    of its workloads then count only where there is no first pass. Unset: if a workload is a ``file`` of yours, whose
    duration nobody knows before."""
    margin: Fraction | None = None
    """Differences up to this count as none. Unset: the site's ``defaults.margin``."""
    reps: Annotated[int, between(1, MOST_REPS)] = 6
    """Timed repetitions of each workload in each run."""
    warmup: Annotated[int, between(0, MOST_REPS)] = 1
    """Repetitions before the first timed one; they are stored, marked, and never used."""
    workload: list[SuiteEntry] = pydantic.Field(min_length=1)
    """The workloads, each a table ``[[workload]]``."""

    @property
    def begins_with_first_pass(self) -> bool:
        """As the file says, else where one of its workloads is the user's own."""
        own = any(entry.file for entry in self.workload)
        return own if self.first_pass is None else self.first_pass

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
    workload = own.described if own else CATALOGUE.get(entry.name)
    if workload is None:
        raise UsageError(f"{file.at(f'{place}.name')}: no workload '{entry.name}'{nearest(entry.name, CATALOGUE)}")
    faults: list[GpubenchError] = []
    if entry.backend not in workload.backends:
        choice = nearest(entry.backend, workload.backends)
        faults.append(
            UsageError(f"{file.at(f'{place}.backend')}: {workload.name} has no backend '{entry.backend}'{choice}")
        )
    params: dict[str, Any] = {key: param.default for key, param in workload.params.items()}
    for key, value in entry.params.items():
        try:
            params[key] = plain_value(workload, key, value)
        except ValueError as error:
            faults.append(UsageError(f"{file.at(f'{place}.params.{key}')}: {error}"))
    if faults:
        raise joined(faults)
    if own:
        try:
            params = own.with_identity(params)
        except ValueError as error:
            raise UsageError(f"{file.at(f'{place}.params')}: {error}") from None
    if fault := workload.fault(entry.backend, params):
        raise UsageError(f"{file.at(place)}: {workload.name}: {fault}")
    return workload.name, entry.backend, params
