"""From runs to arrays: every cell's blocks side by side, who failed where, who ran first."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from gpubench.errors import DataError
from gpubench.stats.data import ComparisonInput, RunSamples
from gpubench.stats.decision import CellCircumstances
from gpubench.stats.order import first_in_block, order_problem
from gpubench.stats.pairs import BASELINE, CANDIDATE, Pairs, complete_pairs
from gpubench.stats.runs import RunNumbers, number_runs

Place = tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class CellBlocks:
    """One comparison with its runs sorted into blocks.

    Args:
        comparison: as it came in.
        blocks: numbers of the blocks that count, ascending.
        runs: by (block, side): the run that has samples.
        failed: (block, side) in which that variant failed.
        lost: (block, side) in which that variant was lost.
        order_problem: why the order of runs can't carry a comparison, else empty.
    """

    comparison: ComparisonInput
    blocks: tuple[int, ...]
    runs: dict[tuple[int, int], RunSamples]
    failed: frozenset[tuple[int, int]]
    lost: frozenset[tuple[int, int]]
    order_problem: str

    @property
    def paired(self) -> list[tuple[RunSamples, RunSamples]]:
        """Complete pairs in block order, baseline first."""
        both = [block for block in self.blocks if (block, BASELINE) in self.runs and (block, CANDIDATE) in self.runs]
        return [(self.runs[block, BASELINE], self.runs[block, CANDIDATE]) for block in both]

    @property
    def broken_blocks(self) -> list[int]:
        """Blocks in which the candidate failed where the baseline ran."""
        return [block for block in self.blocks if (block, CANDIDATE) in self.failed and (block, BASELINE) in self.runs]

    @property
    def one_job(self) -> bool:
        """Several complete pairs come from one allocation."""
        jobs = [baseline.job for baseline, _ in self.paired if baseline.job]
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
    limit = comparison.frozen_at
    counted = [run for run in comparison.runs if run.variant in sides and (limit is None or run.block <= limit)]
    runs: dict[tuple[int, int], RunSamples] = {}
    for run in counted:
        if run.status == "ok" and run.wall_s:
            _check(run, runs.setdefault((run.block, sides[run.variant]), run))
    ended = {
        status: frozenset((r.block, sides[r.variant]) for r in counted if r.status == status)
        for status in ("failed", "lost")
    }
    blocks = tuple(sorted({run.block for run in counted}))
    cell = CellBlocks(comparison, blocks, runs, ended["failed"], ended["lost"] - set(runs), "")
    return dataclasses.replace(cell, order_problem=order_problem(cell.paired))


def _check(run: RunSamples, first: RunSamples) -> None:
    if first is not run:
        raise DataError(
            f"runs '{first.run}' and '{run.run}' are both variant '{run.variant}' in block {run.block}",
            then="give every cluster lifetime its own block",
        )
    if min(run.wall_s) > 0 and math.isfinite(sum(run.wall_s)):
        return  # what follows says the same of every time, and takes longer
    # NaN fails this comparison too.
    if not all(0 < time < float("inf") for time in run.wall_s):
        raise DataError(
            f"run '{run.run}' (variant '{run.variant}', block {run.block}) has a time that is not positive and finite",
            then="no verdict can stand on it; mark the run failed or correct the file",
        )


def arrange(cells: Sequence[CellBlocks]) -> Pairs:
    """Arrays of all cells, as the gate wants them."""
    width = max((len(cell.blocks) for cell in cells), default=0)
    shape = (len(cells), max(width, 1))
    ran, first = np.zeros((*shape, 2), dtype=bool), np.zeros(shape, dtype=np.int64)
    group, groups = np.zeros(shape, dtype=np.int64), dict[tuple[object, int], int]()
    samples: dict[int, list[tuple[Place, tuple[float, ...]]]] = {}
    for row, cell in enumerate(cells):
        nodes = cell.comparison.key.get("nodes")
        for column, block in enumerate(cell.blocks):
            group[row, column] = groups.setdefault((nodes, block), len(groups))
            present = {side: cell.runs[block, side] for side in (BASELINE, CANDIDATE) if (block, side) in cell.runs}
            if len(present) == 2:
                first[row, column] = first_in_block(present[BASELINE], present[CANDIDATE])
            for side, run in present.items():
                ran[row, column, side] = True
                samples.setdefault(len(run.wall_s), []).append(((row, column, side), run.wall_s))
    return complete_pairs(_numbers((*shape, 2), samples), ran, first, group)


def _numbers(shape: tuple[int, int, int], samples: dict[int, list[tuple[Place, tuple[float, ...]]]]) -> RunNumbers:
    # Runs with the same count of samples go through together: no padding, so a long suite costs no memory for a short
    # one.
    numbers = RunNumbers.zeros(shape)
    for entries in samples.values():
        some = number_runs(np.array([times for _, times in entries]))
        places = tuple(np.array([place for place, _ in entries]).T)
        for field in dataclasses.fields(RunNumbers):
            getattr(numbers, field.name)[places] = getattr(some, field.name)
    return numbers


def circumstances(cells: Sequence[CellBlocks]) -> CellCircumstances:
    """Failures, order and environment of all cells, as the gate wants them."""
    return CellCircumstances(
        np.array([len(cell.broken_blocks) for cell in cells], dtype=np.int64),
        np.array([bool(cell.order_problem) for cell in cells], dtype=bool),
        np.array([cell.comparison.frozen_at is not None for cell in cells], dtype=bool),
        np.array([bool(cell.comparison.changed) for cell in cells], dtype=bool),
    )
