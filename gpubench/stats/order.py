"""Order: a comparison stands only on blocks that ran side by side, with each variant first in some of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gpubench.stats.data import RunSamples

Pair = tuple[RunSamples, RunSamples]


def first_in_block(baseline: RunSamples, candidate: RunSamples) -> int:
    """1 where the baseline ran first, -1 where the candidate did, 0 where neither order nor start tells."""
    if baseline.order is not None and candidate.order is not None and baseline.order != candidate.order:
        return 1 if baseline.order < candidate.order else -1
    if baseline.started_at is not None and candidate.started_at is not None:
        return (baseline.started_at < candidate.started_at) - (candidate.started_at < baseline.started_at)
    return 0


def order_problem(pairs: Sequence[Pair]) -> str:
    """Why the order of runs can't carry a comparison; empty where it can, or where nothing is known of it.

    A machine that warms up or fills up changes whatever always runs second (Georges, Buytaert & Eeckhout 2007, OOPSLA;
    sharkdp/hyperfine#21), and that no number of blocks can take out again.

    Args:
        pairs: complete pairs in block order.
    """
    if not pairs:
        return ""
    return _split_block(pairs) or _always_first(pairs)


def _always_first(pairs: Sequence[Pair]) -> str:
    first = {first_in_block(baseline, candidate) for baseline, candidate in pairs}
    if first in ({1}, {-1}):
        variant = pairs[0][0 if first == {1} else 1].variant
        return f"'{variant}' ran first in every block"
    return ""


def _split_block(pairs: Sequence[Pair]) -> str:
    by_job: dict[str, list[RunSamples]] = {}
    for baseline, candidate in pairs:
        if baseline.job != candidate.job:
            return f"the runs of block {baseline.block} are from different jobs"
        by_job.setdefault(baseline.job, []).extend((baseline, candidate))
    for runs in by_job.values():
        # Blocks of different jobs may overlap in time: they run on different nodes.
        if (block := _interrupted(runs)) is not None:
            return f"block {block} did not run side by side: another block ran between its runs"
    return ""


def _interrupted(runs: Sequence[RunSamples]) -> int | None:
    starts = sorted((run.started_at, run.block) for run in runs if run.started_at is not None)
    seen: set[int] = set()
    for (_, before), (_, block) in itertools.pairwise(starts):
        seen.add(before)
        if block != before and block in seen:
            return block
    return None
