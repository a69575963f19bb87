"""Campaigns of thousands of runs: stretches of consecutive blocks instead of single ones, to limit a page's size.

Failures are never pooled, and verdicts don't use the stretches: they use all blocks individually.
"""

import itertools
import statistics
from collections.abc import Iterator, Sequence

from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.stats.data import CellRun

MOST_SAMPLES = 20_000
"""Points that the charts of samples may have; a point takes some 170 bytes of a page."""
MOST_RUNS = 800
"""A run takes some 2 kB of a page's tables."""
_STRETCHES = 100


def many_samples(inputs: JudgedCampaign) -> bool:
    """Whether there are too many samples to draw each."""
    return sum(len(cell.wall_s) for cell in inputs.results.runs) > MOST_SAMPLES


def many_runs(inputs: JudgedCampaign) -> bool:
    """Whether there are too many runs to list each."""
    return len(inputs.outcomes) > MOST_RUNS


def notes(inputs: JudgedCampaign) -> Iterator[str]:
    """What the reader is told about this; nothing if every sample and every run is shown."""
    if many_samples(inputs):
        yield "There are too many samples to draw each: charts show means over stretches of consecutive blocks."
    if many_runs(inputs):
        yield (
            f"{len(inputs.outcomes):,} runs are too many to list each: tables show means over stretches of consecutive "
            "blocks, and by itself whatever isn't ok. Every run stands in runs/."
        )


def stretches(cells: Sequence[CellRun], variants: Sequence[str]) -> Iterator[tuple[str, dict[str, list[CellRun]]]]:
    """At most a hundred stretches of blocks in the order of ``cells``: their name, and the cells of each variant."""
    by_block: dict[int, list[CellRun]] = {}
    for cell in cells:
        by_block.setdefault(cell.block or 0, []).append(cell)
    blocks = list(by_block)
    width = -(-len(blocks) // _STRETCHES)
    for at in range(0, len(blocks), width):
        part = blocks[at : at + width]
        of_variant: dict[str, list[CellRun]] = {label: [] for label in variants}
        for cell in itertools.chain.from_iterable(by_block[block] for block in part):
            of_variant[cell.variant].append(cell)
        yield name(part), of_variant


def mean(cells: Sequence[CellRun]) -> float | None:
    """Mean of the means of those runs that count, in seconds; None where none does."""
    means = [statistics.fmean(cell.wall_s) for cell in cells if cell.status == "ok"]
    return statistics.fmean(means) if means else None


def name(blocks: Sequence[int]) -> str:
    """``3–17`` for several blocks."""
    return str(blocks[0]) if len(blocks) == 1 else f"{min(blocks)}–{max(blocks)}"
