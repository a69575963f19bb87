"""The catalogue of workloads for people and for programs."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from gpubench.errors import UsageError
from gpubench.model.base import nearest
from gpubench.model.quantities import format_bytes
from gpubench.model.suite import spelled
from gpubench.workloads.catalogue import CATALOGUE, Param, Shape, Workload

WORKLOADS = "gpubench/workloads/1"
PIPED_COLUMNS = 80
MOST_COLUMNS = 120
UNITS = {"size": "bytes", "duration": "seconds", "fraction": "1"}
"""Units of the plain values in records and JSON, by kind; the others count, name or choose."""
_HEAD = "{:<26} {:<14} {:<8} {}"


def chosen(name: str | None) -> list[Workload]:
    """One workload, or all in the catalogue's order; raises UsageError."""
    if name is None:
        return list(CATALOGUE.values())
    if name not in CATALOGUE:
        raise UsageError(f"no workload '{name}'{nearest(name, CATALOGUE)}")
    return [CATALOGUE[name]]


def document(workloads: Iterable[Workload]) -> dict[str, Any]:
    """Everything of them as plain values; a field never changes its meaning within a schema's version."""
    return {"schema": WORKLOADS, "workloads": [_plain(one) for one in workloads]}


def table_lines(workloads: Iterable[Workload]) -> Iterator[str]:
    """A few lines each; a line that begins in the first column names a workload."""
    yield _HEAD.format("workload", "family", "scaling", "devices").rstrip()
    for one in workloads:
        yield _HEAD.format(one.name, one.family, one.scaling, " ".join(one.devices)).rstrip()
        yield from _field("backend", " ".join(one.backends))
        yield from _field("timed", f"{one.timed} (graph: {one.graph})")
        yield from _field("bytes", one.counted)
        yield from _field("oracle", one.oracle)


def sheet_lines(one: Workload) -> Iterator[str]:
    """Everything of one workload."""
    least = f"; needs {one.least_workers} workers at least" if one.least_workers > 1 else ""
    yield from _wrapped("", "  ", f"{one.name}: {one.family}, after {one.source}")
    yield from _field("scaling", one.scaling + least)
    yield from _field("devices", ", ".join(one.devices))
    for backend in one.backends:
        needs = ", ".join(one.needs.get(backend, ()))
        yield from _field("backend", backend + (f", needs {needs}" if needs else ""))
    yield from _field("timed", one.timed)
    yield from _field("graph", one.graph)
    yield from _field("bytes", one.counted)
    yield from _field("oracle", one.oracle)
    yield from _field("holds", f"{one.held_text}{_example(one)}")
    grows = ", ".join(name if power == 1 else f"{name}^{power:g}" for name, power in one.grows)
    yield from _field("--size", f"changes {grows}" if grows else "changes nothing")
    yield "parameters"
    for name, param in one.params.items():
        yield f"  {name} = {spelled(param, param.default)}"
        yield from _wrapped("    ", "    ", f"{param.kind}: {param.text}")
        if param.choices:
            yield from _wrapped("    ", "    ", f"one of {', '.join(param.choices)}")
        if param.original:
            yield from _wrapped("    ", "    ", f"originally {param.original}")


def markdown_lines(workloads: Iterable[Workload]) -> Iterator[str]:
    """A Markdown table, as docs/workloads.md has it."""
    yield "| workload | after | scaling | backends | timed | graph | bytes | an answer is right when |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in workloads:
        cells = (
            f"`{one.name}`",
            one.source,
            one.scaling,
            ", ".join(one.backends),
            one.timed,
            one.graph,
            one.counted,
            one.oracle,
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _plain(one: Workload) -> dict[str, Any]:
    return {
        "name": one.name,
        "family": one.family,
        "source": one.source,
        "scaling": one.scaling,
        "backends": [{"name": name, "needs": list(one.needs.get(name, ()))} for name in one.backends],
        "devices": list(one.devices),
        "timed": one.timed,
        "graph": one.graph,
        "counted": one.counted,
        "oracle": one.oracle,
        "held": one.held_text,
        "grows": [{"parameter": name, "exponent": power} for name, power in one.grows],
        "least_workers": one.least_workers,
        "parameters": [_plain_param(name, param) for name, param in one.params.items()],
    }


def _plain_param(name: str, param: Param) -> dict[str, Any]:
    return {
        "name": name,
        "kind": param.kind,
        "unit": UNITS.get(param.kind, ""),
        "default": param.default,
        "choices": list(param.choices),
        "text": param.text,
        "original": param.original,
    }


def _example(one: Workload) -> str:
    held = one.held({name: param.default for name, param in one.params.items()}, Shape(1, 2, 1))
    return f"; {format_bytes(held)} by default on two workers" if held else ""


def _field(name: str, text: str) -> Iterator[str]:
    return _wrapped(f"  {name:<8} ", " " * 11, text)


def _wrapped(first: str, other: str, text: str) -> Iterator[str]:
    columns = min(shutil.get_terminal_size().columns, MOST_COLUMNS) if sys.stdout.isatty() else PIPED_COLUMNS
    yield from textwrap.wrap(
        text,
        max(columns - 1, 40),
        initial_indent=first,
        subsequent_indent=other,
        break_long_words=False,
        break_on_hyphens=False,
    )
