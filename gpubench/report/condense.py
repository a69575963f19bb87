"""Campaigns of thousands of runs: a page shows every so many blocks, to limit its size.

Failures are always listed, and verdicts use all blocks.
"""

from gpubench.results.judged_campaign import JudgedCampaign

MOST_SAMPLES = 20_000
"""Points that the charts of samples may have; a point takes some 170 bytes of a page."""
MOST_RUNS = 800
"""A run takes some 2 kB of a page's tables."""


def step(inputs: JudgedCampaign) -> int:
    """Every how many blocks one is shown; 1 where all are."""
    samples = sum(len(cell.wall_s) for cell in inputs.results.runs)
    return max(1, -(-samples // MOST_SAMPLES), -(-len(inputs.outcomes) // MOST_RUNS))


def shown_blocks(inputs: JudgedCampaign) -> set[int]:
    """Blocks of which the page shows runs and samples, evenly spaced over all."""
    return set(sorted({outcome.block.block for outcome in inputs.outcomes})[:: step(inputs)])


def note(inputs: JudgedCampaign) -> str:
    """What the reader is told about this; empty if every block is shown."""
    if step(inputs) == 1:
        return ""
    return (
        f"{len(inputs.outcomes):,} runs are too many to show each: charts and tables show "
        f"{len(shown_blocks(inputs))} blocks, evenly spaced over all, and besides every run that isn't ok. "
        "Verdicts use all blocks. Every run stands in runs/."
    )
