"""What verdicts are made from: cells in their runs, with their samples, and the comparisons of a family."""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Status = Literal["ok", "failed", "skipped", "lost", "pending"]
LEAST_TRAFFIC = 2**20
"""Bytes of a repetition between workers, below which UCX has nothing to make slower."""

Key = tuple[tuple[str, Any], ...]
"""What identifies a cell, by name; what is not recorded is left out."""

BlockId = tuple[str, int]
"""Where a block is from, and its number there: equal numbers of two campaigns are two blocks."""


@dataclasses.dataclass(frozen=True, slots=True)
class CellRun:
    """One cell in one run of one variant: how it ended, and its timed samples.

    Args:
        block: number of the block; ascending numbers are ascending in time. None where nothing tells blocks.
        order: place of the variant in its block from 0, None where unknown.
        started_at: POSIX seconds of the first sample, None where unknown.
        wall_s: timed samples in seconds, in the order of their repetitions, warm-up left out.
        status: how the cell ended in this run; ``pending`` while it may still end.
        job: name of the allocation, empty where unknown.
        key: the cell.
        origin: the campaign, import or table that the run is from.
        reason: why it is not ``ok``.
        unchecked: nobody checked the answers of some of its samples.
        date: the day of the measurement, None where unknown.
        workers: worker processes of the whole cluster.
        bytes: nominal, of a repetition.
        wall_se: standard error of the time in seconds, where a source says it of its mean.
        moved: bytes that were seen between workers, of a repetition; None where that isn't known, or it says its least.
        lacking: it was skipped because the image or the cluster lacks what it needs, which no further block changes.
    """

    run: str
    block: int | None
    variant: str
    order: int | None
    started_at: float | None
    wall_s: tuple[float, ...]
    status: Status
    job: str = ""
    key: Key = ()
    origin: str = ""
    reason: str = ""
    unchecked: bool = False
    date: dt.date | None = None
    workers: int | None = None
    bytes: int | None = None
    wall_se: float | None = None
    moved: int | None = None
    lacking: bool = False

    @property
    def times(self) -> tuple[float, ...]:
        """The samples that count: those of a run that is ``ok``."""
        return self.wall_s if self.status == "ok" else ()

    @property
    def block_id(self) -> BlockId | None:
        """The block; None where nothing tells blocks."""
        return None if self.block is None else (self.origin, self.block)


@dataclasses.dataclass(frozen=True, slots=True)
class ComparisonInput:
    """One member of the family: a cell of the candidate against the same cell of the baseline.

    Args:
        key: what identifies the cell (workload, nodes, ...).
        runs: the runs of both variants in this cell, in any order; those of other variants, without a block and
            ``pending`` are ignored.
        planned_blocks: how many blocks the plan holds for this cell.
        changed: what else changed with the variant though nobody asked for it (``kernel``: ``6.1.0 → 6.2.0``).
        skipped: why none of its blocks was run: planned so, by a known issue.
        refused: why the two sides can't be compared at all; they stay in the family.
        oversubscribed: in some of its runs more processes polled on a machine than it has cores.
        by_date: its blocks are the dates on which somebody measured: none can be added.
        notes: further flags.
    """

    key: Mapping[str, object]
    baseline: str
    candidate: str
    runs: Sequence[CellRun]
    planned_blocks: int
    changed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    skipped: str = ""
    refused: str = ""
    oversubscribed: bool = False
    by_date: bool = False
    notes: tuple[str, ...] = ()

    @property
    def unchecked(self) -> bool:
        """Whether nobody checked the answers of some of its samples."""
        return any(run.unchecked for run in self.runs)

    @property
    def moved(self) -> int | None:
        """The most between workers in a repetition of any of its runs; None where that of one is not known."""
        moved = [run.moved for run in self.runs if run.times]
        return None if None in moved else max((size or 0 for size in moved), default=None)

    @property
    def origins(self) -> tuple[set[str], set[str]]:
        """Where the runs of the baseline and of the candidate are from."""
        baseline, candidate = (
            {run.origin for run in self.runs if run.variant == variant} for variant in (self.baseline, self.candidate)
        )
        return baseline, candidate
