"""What verdicts are made from: runs with their samples, and the comparisons that were planned."""

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

Status = Literal["ok", "failed", "skipped", "lost"]
SUMMARIES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "geomean": statistics.geometric_mean,
    "median": statistics.median,
}
"""From the seconds of a run to its number, by ``Summary``."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunSamples:
    """One workload in one run: one variant in one block.

    Args:
        block: number of the block; ascending numbers are ascending in time.
        order: place of the variant in its block from 0, None where unknown.
        started_at: POSIX seconds, None where unknown.
        wall_s: timed samples in seconds, in the order of their repetitions, warm-up left out; empty unless ``ok``.
        status: how the workload ended in this run.
        job: name of the allocation, empty where unknown.
    """

    run: str
    block: int
    variant: str
    order: int | None
    started_at: float | None
    wall_s: tuple[float, ...]
    status: Status
    job: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ComparisonInput:
    """One member of the family: a cell of the candidate against the same cell of the baseline.

    Args:
        key: what identifies the cell (workload, nodes, ...).
        runs: the runs of both variants in this cell, in any order; runs of other variants are ignored.
        planned_blocks: how many blocks the plan holds for this cell.
        skipped: why none of its blocks was run: planned so, by a known issue.
        oversubscribed: in some of its runs more processes polled on a machine than it has cores.
        unchecked: nobody checked the answers of some of its samples.
        changed: what else changed with the variant though nobody asked for it (``kernel``: ``6.1.0 → 6.2.0``).
    """

    key: Mapping[str, object]
    baseline: str
    candidate: str
    runs: Sequence[RunSamples]
    planned_blocks: int
    changed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    skipped: str = ""
    oversubscribed: bool = False
    unchecked: bool = False
