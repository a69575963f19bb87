"""The catalogue of workloads for people and for programs."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from gpubench.model.parameters import spelled
from gpubench.model.quantities import format_bytes
from gpubench.node.workloads.catalogue import CATALOGUE, Shape, Workload
from gpubench.resources.own_workloads import workloads_named, workloads_of
from gpubench.resources.profiles import load_suite, suite_names

WORKLOADS = "gpubench/workloads/1"
PIPED_COLUMNS = 80
MOST_COLUMNS = 120
UNITS = {"size": "bytes", "duration": "seconds", "fraction": "1"}
"""Units of the plain values in records and JSON, by kind; other kinds have no unit."""
_HEAD = "{:<26} {:<14} {:<8} {}"


def listed(name: str | None) -> Iterator[str]:
    """Every suite and every workload by name; the workloads of a suite; or all details of one workload."""
    if name is None:
        for suite_name in suite_names():
            suite, _ = load_suite(suite_name)
            yield f"{suite_name}: {suite.description}"
            yield from _wrapped("  ", "  ", ", ".join(dict.fromkeys(entry.name for entry in suite.workload)))
        yield "all workloads:"
        yield from _wrapped("  ", "  ", ", ".join(CATALOGUE))
        return
    if name in suite_names() or name.endswith(".toml"):
        suite, source = load_suite(name)
        yield f"{suite.name}: {suite.description}"
        yield from table_lines(workloads_of(suite, source))
        if name not in CATALOGUE:
            return
    for workload in workloads_named(name):
        yield from sheet_lines(workload)


def document(workloads: Iterable[Workload]) -> dict[str, Any]:
    """Everything of them as plain values; a field never changes its meaning within a schema's version."""
    return {"schema": WORKLOADS, "workloads": [_plain(workload) for workload in workloads]}


def table_lines(workloads: Iterable[Workload]) -> Iterator[str]:
    """A few lines each; a line that begins in the first column names a workload."""
    yield _HEAD.format("workload", "family", "scaling", "devices").rstrip()
    for workload in workloads:
        yield _HEAD.format(workload.name, workload.family, workload.scaling, " ".join(workload.devices)).rstrip()
        yield from _field("backend", " ".join(workload.backends))
        yield from _field("timed", f"{workload.timed} (graph: {workload.graph})")
        yield from _field("bytes", workload.counted)
        yield from _field("oracle", workload.oracle)


def sheet_lines(workload: Workload) -> Iterator[str]:
    """All details of one workload."""
    least = f"; needs {workload.least_workers} workers at least" if workload.least_workers > 1 else ""
    yield from _wrapped("", "  ", f"{workload.name}: {workload.family}, after {workload.source}")
    yield from _field("scaling", workload.scaling + least)
    yield from _field("devices", ", ".join(workload.devices))
    for backend in workload.backends:
        needs = ", ".join(workload.needs.get(backend, ()))
        yield from _field("backend", backend + (f", needs {needs}" if needs else ""))
    yield from _field("timed", workload.timed)
    yield from _field("graph", workload.graph)
    yield from _field("bytes", workload.counted)
    yield from _field("oracle", workload.oracle)
    yield from _field("holds", f"{workload.held_text}{_example(workload)}")
    grows = ", ".join(name if power == 1 else f"{name}^{power:g}" for name, power in workload.grows)
    yield from _field("--size", f"changes {grows}" if grows else "changes nothing")
    if workload.params:
        yield "parameters"
    for name, param in workload.params.items():
        yield f"  {name} = {spelled(param, param.default)}"
        yield from _wrapped("    ", "    ", ": ".join(filter(None, (param.kind, param.text))))
        if param.choices:
            yield from _wrapped("    ", "    ", f"one of {', '.join(param.choices)}")
        if param.original:
            yield from _wrapped("    ", "    ", f"originally {param.original}")


def markdown_lines(workloads: Iterable[Workload]) -> Iterator[str]:
    """A Markdown table, as docs/workloads.md has it."""
    yield "| workload | after | scaling | backends | timed | graph | bytes | an answer is right when |"
    yield "|---|---|---|---|---|---|---|---|"
    for workload in workloads:
        measured = (workload.timed, workload.graph, workload.counted, workload.oracle)
        cells = (f"`{workload.name}`", workload.source, workload.scaling, ", ".join(workload.backends), *measured)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _plain(workload: Workload) -> dict[str, Any]:
    return {
        **{name: getattr(workload, name) for name in ("name", "family", "source", "scaling")},
        "backends": [{"name": name, "needs": list(workload.needs.get(name, ()))} for name in workload.backends],
        "devices": list(workload.devices),
        **{name: getattr(workload, name) for name in ("timed", "graph", "counted", "oracle")},
        "held": workload.held_text,
        "grows": [{"parameter": name, "exponent": power} for name, power in workload.grows],
        "least_workers": workload.least_workers,
        "parameters": [
            {"name": name, "kind": param.kind, "unit": UNITS.get(param.kind, ""), "default": param.default}
            | {"choices": list(param.choices), "text": param.text, "original": param.original}
            for name, param in workload.params.items()
        ],
    }


def _example(workload: Workload) -> str:
    held = workload.held({name: param.default for name, param in workload.params.items()}, Shape(1, 2, 1))
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
