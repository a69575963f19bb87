"""Two campaigns or imports as two sides of one question: which of their cells may be held against each other. Pure."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from gpubench.history.observed import key_of
from gpubench.importers.pairing import CELL, GROWS, UNKNOWN, Key, rule_of, units_of
from gpubench.merge.family import Cell
from gpubench.model.plan import Plan
from gpubench.model.quantities import format_bytes
from gpubench.stats.runs import number_runs
from gpubench.stats.scaling import Rule
from gpubench.stats.settings import Summary

QUESTION = ("workload", "backend", "params")


@dataclasses.dataclass(frozen=True)
class SideLayout:
    """How the workers of a cluster stood: what isn't recorded is None. ``memory`` is bytes of all workers of a node."""

    workers: int
    processes: int | None
    threads: int | None
    memory: int | None

    def __str__(self) -> str:
        first = f"{self.workers} in all" if self.processes is None else str(self.processes)
        memory = "memory not recorded" if self.memory is None else format_bytes(self.memory)
        return f"{first} x {'?' if self.threads is None else self.threads} x {memory}"

    def unlike(self, other: "SideLayout") -> bool:
        """Whether anything that both recorded differs."""
        both = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return any(None not in pair and pair[0] != pair[1] for pair in both)

    def unknown(self, other: "SideLayout") -> list[str]:
        """What only one of them, or none, recorded."""
        names = {"processes": "processes per node", "threads": "threads per process", "memory": "memory per node"}
        return [words for name, words in names.items() if None in (getattr(self, name), getattr(other, name))]


@dataclasses.dataclass(frozen=True)
class SideCell:
    """A cell of one side under the variant that was chosen there.

    Args:
        question: what was measured; no size of the cluster, nothing of the machine.
        units: worker threads of the cluster.
        logs: log of the seconds of every run (of every date, or file, of an import).
        blocks: the same, averaged over the runs of each block (of an import: date); empty where nothing tells blocks.
    """

    question: Key
    units: int
    layout: SideLayout
    protocol: str | None
    device: str | None
    rule: Rule
    logs: tuple[float, ...]
    blocks: tuple[float, ...]


def of_campaign(plan: Plan, table: Iterable[Cell], variant: str, summary: Summary) -> list[SideCell]:
    """The cells of a campaign's variant; of runs that are ok. ``summary`` makes the number of each run."""
    found: dict[tuple[str, tuple[int, int]], list[Cell]] = {}
    for cell in table:
        if cell.outcome.run.variant == variant:
            found.setdefault((cell.workload.params_id, cell.outcome.job.place), []).append(cell)
    return [_of_cells(plan, cells, summary) for cells in found.values()]


def _of_cells(plan: Plan, cells: Sequence[Cell], summary: Summary) -> SideCell:
    nodes, processes = place = cells[0].outcome.job.place
    blocks: dict[int, list[float]] = {}
    for cell in cells:
        if cell.status == "ok" and cell.wall_s:
            value = float(number_runs(np.array(cell.wall_s)).summary(summary))
            blocks.setdefault(cell.outcome.block.block, []).append(value)
    limit, threads = plan.memory_limit(place), plan.threads_per_worker
    question = tuple(part for part in key_of(plan, cells[0]) if part[0] in QUESTION)
    return SideCell(
        question,
        nodes * processes * threads,
        SideLayout(nodes * processes, processes, threads, processes * limit or None),
        plan.protocol,
        plan.device,
        rule_of(cells[0].workload.name),
        tuple(value for block in blocks.values() for value in block),
        tuple(float(np.mean(block)) for block in blocks.values()),
    )


def of_import(table: pl.DataFrame, variant: str, summary: Summary) -> list[SideCell]:
    """The cells of an import's version (UNKNOWN where none is recorded); rows of unknown size are in none.

    ``summary`` makes the number of each run, and of each date.
    """
    found: dict[tuple[Key, int, SideLayout, str | None, str | None], list[dict[str, Any]]] = {}
    for row in table.filter(~pl.col("warmup")).sort("file", "line").iter_rows(named=True):
        units = units_of(row)
        if units is None or (row["variant"] or UNKNOWN) != variant:
            continue
        layout = SideLayout(row["workers"], row["workers_per_node"], row["threads_per_worker"], None)
        found.setdefault((_question(row), units, layout, row["protocol"], row["device"]), []).append(row)
    cells = []
    for (question, units, layout, protocol, device), rows in found.items():
        logs = _numbers(rows, "run", summary)
        blocks = _numbers([row for row in rows if row["date"] is not None], "date", summary)
        rule = rule_of(str(dict(question)["workload"]))
        cells.append(SideCell(question, units, layout, protocol, device, rule, logs, blocks))
    return cells


def _numbers(rows: Iterable[dict[str, Any]], by: str, summary: Summary) -> tuple[float, ...]:
    """One for the rows of each run, or date."""
    groups: dict[Any, list[float]] = {}
    for row in rows:
        groups.setdefault(row[by], []).append(row["wall_s"])
    return tuple(float(number_runs(np.array(one)).summary(summary)) for one in groups.values())


def variants_of_import(table: pl.DataFrame) -> list[str]:
    """Its versions by name; UNKNOWN where none is recorded."""
    return sorted({one or UNKNOWN for one in table["variant"].to_list()})


def _question(row: dict[str, Any]) -> Key:
    params = {name: value for name, value in json.loads(row["params"]).items() if name not in GROWS}
    known = {**row, "params": json.dumps(params, sort_keys=True, separators=(",", ":"))}
    return tuple((name, known[name]) for name in CELL if name in QUESTION and known[name] is not None)


@dataclasses.dataclass(frozen=True)
class Pair:
    """A cell of both sides. ``refused`` says why they can't be compared; ``unknown`` what nobody can check."""

    first: SideCell
    second: SideCell
    refused: str
    unknown: tuple[str, ...]


def match(first: Sequence[SideCell], second: Sequence[SideCell]) -> tuple[list[Pair], list[tuple[str, SideCell]]]:
    """Cells of the same question and size, and those that only one side has (``A`` or ``B``)."""
    pairs: list[Pair] = []
    met: set[int] = set()
    for one in first:
        others = [other for other in second if (other.question, other.units) == (one.question, one.units)]
        alike = [other for other in others if not _refusal(one, other)]
        for other in alike or others:
            met |= {id(one), id(other)}
            unknown = one.layout.unknown(other.layout)
            pairs.append(Pair(one, other, _refusal(one, other), tuple(unknown)))
    pairs.sort(key=lambda pair: (str(pair.first.question), pair.first.units))
    lone = [(side, one) for side, cells in (("A", first), ("B", second)) for one in cells if id(one) not in met]
    return pairs, lone


def _refusal(one: SideCell, other: SideCell) -> str:
    if one.layout.unlike(other.layout):
        return f"layout: {one.layout} against {other.layout} (processes x threads x memory of a node)"
    if None not in (one.device, other.device) and one.device != other.device:
        return f"device: {one.device} against {other.device}"
    return ""
