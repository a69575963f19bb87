"""Paired block data: every cell's blocks side by side, who ran first, and the arrays of complete pairs.

A comparison stands only on blocks that ran side by side, with each variant first in some of them.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from gpubench.errors import DataError
from gpubench.stats.data import BlockId, CellRun, ComparisonInput
from gpubench.stats.runs import Bools, Floats, Ints, RunNumbers, number_runs

Pair = tuple[CellRun, CellRun]


def first_in_block(baseline: CellRun, candidate: CellRun) -> int:
    """1 where the baseline ran first, -1 where the candidate did, 0 where neither order nor start tells."""
    if baseline.order is not None and candidate.order is not None and baseline.order != candidate.order:
        return 1 if baseline.order < candidate.order else -1
    if baseline.started_at is not None and candidate.started_at is not None:
        return (baseline.started_at < candidate.started_at) - (candidate.started_at < baseline.started_at)
    return 0


def order_problem(pairs: Sequence[Pair]) -> str:
    """Why the order of runs can't carry a comparison, and what to do; empty where it can, or nothing is known of it.

    A machine that warms up or fills up changes whatever always runs second (Georges, Buytaert & Eeckhout 2007, OOPSLA;
    sharkdp/hyperfine#21), and that no number of blocks can take out again.

    Args:
        pairs: complete pairs in block order.
    """
    by_job: dict[tuple[str, str], list[CellRun]] = {}
    for baseline, candidate in pairs:
        if baseline.job != candidate.job:
            return f"the runs of block {baseline.block} are from different jobs; run a block in one job"
        by_job.setdefault((baseline.origin, baseline.job), []).extend((baseline, candidate))
    for runs in by_job.values():
        # Blocks of different jobs may overlap in time: they run on different nodes.
        if (block := _interrupted(runs)) is not None:
            return f"block {block} did not run side by side: another one ran between its runs; run block after block"
    first = {first_in_block(*pair) for pair in pairs}
    if first in ({1}, {-1}):
        variant = pairs[0][0 if first == {1} else 1].variant
        return f"'{variant}' ran first in every block; shuffle the order within blocks"
    return ""


def _interrupted(runs: Sequence[CellRun]) -> int | None:
    starts = sorted((run.started_at, run.block) for run in runs if run.started_at is not None and run.block is not None)
    seen: set[int] = set()
    for (_, before), (_, block) in itertools.pairwise(starts):
        seen.add(before)
        if block != before and block in seen:
            return block
    return None


BASELINE, CANDIDATE = 0, 1


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Arrays of shape (cells, width) or (cells, width, 2); the last axis is baseline, candidate.

    Only the first ``blocks`` entries of a row count; what stands behind them is meaningless.

    Args:
        numbers: of the runs, each array (cells, width, 2).
        blocks: complete pairs of each cell, shape (cells,).
        first: who ran first: 1 the baseline, -1 the candidate, 0 unknown.
    """

    numbers: RunNumbers
    blocks: Ints
    first: Ints

    @property
    def mask(self) -> Bools:
        """Which entries count, shape (cells, width)."""
        return np.asarray(np.arange(self.first.shape[1])[None, :] < self.blocks[:, None])

    @property
    def differences(self) -> Floats:
        """Candidate minus baseline in logs, 0 where there is no pair; shape (cells, width)."""
        return self._of(self.numbers.log_mean)

    @property
    def median_differences(self) -> Floats:
        """The same of the runs' medians."""
        return self._of(self.numbers.log_median)

    def _of(self, numbers: Floats) -> Floats:
        return np.where(self.mask, numbers[..., CANDIDATE] - numbers[..., BASELINE], 0.0)


def complete_pairs(numbers: RunNumbers, ran: Bools, first: Ints) -> Pairs:
    """Leave out blocks in which only one variant ran, and close the gaps; the order of blocks stays.

    Args:
        numbers: arrays of shape (cells, blocks, 2), blocks ascending.
        ran: whether that run ended ``ok`` with samples, same shape.
        first: as in Pairs, shape (cells, blocks).
    """
    both = ran.all(axis=2)
    position = np.argsort(~both, axis=1, kind="stable")
    return Pairs(
        numbers.map(lambda array: np.take_along_axis(array, position[..., None], axis=1)),
        both.sum(axis=1),
        np.take_along_axis(first, position, axis=1),
    )


def count(mask: Bools) -> Ints:
    """How many entries of each cell count; the mask has shape (cells, ...), the result (cells,)."""
    return np.asarray(np.sum(mask, axis=tuple(range(1, mask.ndim)), dtype=np.int64))


def masked_mean(values: Floats, mask: Bools) -> Floats:
    """Mean over the second axis of what counts; 0 where nothing does."""
    return np.asarray(np.sum(np.where(mask, values, 0.0), axis=1) / np.maximum(count(mask), 1))


def masked_sd(values: Floats, mask: Bools) -> Floats:
    """Standard deviation (n - 1) over the second axis of what counts; 0 below two values."""
    centred = np.where(mask, values - masked_mean(values, mask)[:, None], 0.0)
    return np.asarray(np.sqrt(np.sum(centred**2, axis=1) / np.maximum(count(mask) - 1, 1)))


Position = tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class CellBlocks:
    """One comparison with its runs sorted into blocks.

    Args:
        blocks: those that count, ascending.
        runs: by (block, side): the run that has samples.
        failed: (block, side) in which that variant failed.
        lost: (block, side) in which that variant was lost.
    """

    comparison: ComparisonInput
    blocks: tuple[BlockId, ...]
    runs: dict[tuple[BlockId, int], CellRun]
    failed: frozenset[tuple[BlockId, int]]
    lost: frozenset[tuple[BlockId, int]]

    @functools.cached_property
    def paired(self) -> list[tuple[CellRun, CellRun]]:
        """Complete pairs in block order, baseline first."""
        both = [block for block in self.blocks if (block, BASELINE) in self.runs and (block, CANDIDATE) in self.runs]
        return [(self.runs[block, BASELINE], self.runs[block, CANDIDATE]) for block in both]

    @functools.cached_property
    def order_problem(self) -> str:
        """Why the order of runs can't carry a comparison, else empty."""
        return order_problem(self.paired)

    @property
    def broken_blocks(self) -> list[int]:
        """Numbers of the blocks in which the candidate failed where the baseline ran."""
        return [
            block[1] for block in self.blocks if (block, CANDIDATE) in self.failed and (block, BASELINE) in self.runs
        ]

    def lacking(self) -> str:
        """Why one of the variants can't measure this at all, if its image or its cluster lacks what it needs."""
        for variant in (self.comparison.baseline, self.comparison.candidate):
            runs = [run for run in self.comparison.runs if run.variant == variant]
            if not any(run.times for run in runs):
                for run in runs:
                    if run.lacking:
                        return f"{variant} can't measure it: {run.reason}"
        return ""

    def failures(self, side: int) -> int:
        """In how many blocks that variant failed."""
        return sum(of == side for _, of in self.failed)

    @property
    def one_job(self) -> bool:
        """Several complete pairs come from one allocation."""
        jobs = [(baseline.origin, baseline.job) for baseline, _ in self.paired if baseline.job]
        return len(set(jobs)) < len(jobs)


def read_cell(comparison: ComparisonInput) -> CellBlocks:
    """Sort the runs of a comparison into blocks.

    Raises:
        DataError: baseline and candidate are the same, two runs of one variant have samples in one block, or a time is
            not positive and finite.
    """
    sides = {comparison.baseline: BASELINE, comparison.candidate: CANDIDATE}
    if len(sides) < 2:
        raise DataError(f"'{comparison.baseline}' compared with itself", then="name two different variants")
    counted = [
        (block, sides[run.variant], run)
        for run in comparison.runs
        if run.variant in sides and run.status != "pending" and (block := run.block_id) is not None
    ]
    runs: dict[tuple[BlockId, int], CellRun] = {}
    for block, side, run in counted:
        if run.times:
            _check(run, runs.setdefault((block, side), run))
    ended = {
        status: frozenset((block, side) for block, side, run in counted if run.status == status)
        for status in ("failed", "lost")
    }
    blocks = tuple(sorted({block for block, _, _ in counted}))
    return CellBlocks(comparison, blocks, runs, ended["failed"], ended["lost"] - set(runs))


def _check(run: CellRun, first: CellRun) -> None:
    if first is not run:
        raise DataError(
            f"runs '{first.run}' and '{run.run}' are both variant '{run.variant}' in block {run.block}",
            then="give every cluster lifetime its own block, or name the columns in which they differ: --by",
        )
    # NaN makes a sum that isn't finite, wherever it stands.
    if not (min(run.wall_s) > 0 and math.isfinite(sum(run.wall_s))):
        raise DataError(
            f"run '{run.run}' (variant '{run.variant}', block {run.block}) has a time that is not positive and finite, "
            "or times too large to add",
            then="no verdict can be based on it; mark the run failed or correct the file",
        )


def arrange(cells: Sequence[CellBlocks]) -> Pairs:
    """Arrays of all cells, as the verdict rule wants them."""
    width = max((len(cell.blocks) for cell in cells), default=0)
    shape = (len(cells), max(width, 1))
    ran, first = np.zeros((*shape, 2), dtype=bool), np.zeros(shape, dtype=np.int64)
    samples: dict[int, list[tuple[Position, tuple[float, ...]]]] = {}
    for row, cell in enumerate(cells):
        for column, block in enumerate(cell.blocks):
            present = {side: cell.runs[block, side] for side in (BASELINE, CANDIDATE) if (block, side) in cell.runs}
            if len(present) == 2:
                first[row, column] = first_in_block(present[BASELINE], present[CANDIDATE])
            for side, run in present.items():
                ran[row, column, side] = True
                samples.setdefault(len(run.wall_s), []).append(((row, column, side), run.wall_s))
    return complete_pairs(_numbers((*shape, 2), samples), ran, first)


def _numbers(shape: tuple[int, int, int], samples: dict[int, list[tuple[Position, tuple[float, ...]]]]) -> RunNumbers:
    # Runs with the same count of samples go through together: no padding, so a long suite costs no memory for a short
    # one.
    numbers = RunNumbers.zeros(shape)
    for entries in samples.values():
        numbered = number_runs(np.array([times for _, times in entries]))
        positions = tuple(np.array([position for position, _ in entries]).T)
        for field in dataclasses.fields(RunNumbers):
            getattr(numbers, field.name)[positions] = getattr(numbered, field.name)
    return numbers
