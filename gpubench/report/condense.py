"""Campaigns of thousands of runs: stretches of consecutive blocks instead of single ones, to limit a page's size.

Failures are never pooled, and verdicts don't use the stretches: they use all blocks individually.
"""

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpubench.report.inputs import JudgedCampaign
from gpubench.stats.data import CellRun

MOST_RUNS = 800
"""A run takes some 2 KB of a page of at most 3 MB."""
_STRETCHES = 100


def needed(inputs: JudgedCampaign) -> bool:
    """Whether the campaign has too many runs to list each."""
    return len(inputs.outcomes) > MOST_RUNS


def sentence(inputs: JudgedCampaign) -> str:
    """The note about this for the reader; empty if every run is listed."""
    if not needed(inputs):
        return ""
    return (
        f"{len(inputs.outcomes):,} runs are too many to list each: charts and tables show means over stretches of "
        "consecutive blocks, and by itself whatever isn't ok. "
        "Every run stands in runs/, every sample in results.parquet."
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
        yield _name(part), of_variant


def mean(cells: Sequence[CellRun]) -> float | None:
    """Mean of the means of those runs that count, in seconds; None where none does."""
    found = [statistics.fmean(cell.wall_s) for cell in cells if cell.status == "ok"]
    return statistics.fmean(found) if found else None


def collapsed(blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the matrix of runs: consecutive rows in which everything went as planned are one row."""
    rows: list[dict[str, Any]] = []
    for plain, group in itertools.groupby(blocks, key=_went_as_planned):
        found = list(group)
        if not plain or len(found) == 1:
            rows.extend(dict(row) for row in found)
            continue
        entry = {**found[0]["runs"][0], "place": "", "record": "", "samples": "", "provenance": "", "logs": ""}
        runs = [{**entry, "reasons": [f"{len(found)} runs"]} for _ in found[0]["runs"]]
        rows.append({"block": _name([row["block"] for row in found]), "replaces": None, "runs": runs})
    return rows


def _went_as_planned(row: Mapping[str, Any]) -> bool:
    return row["replaces"] is None and all(
        run and run["status"] == "ok" and run["attempt"] == 1 and not run["reasons"] and not run["partly"]
        for run in row["runs"]
    )


def _name(blocks: Sequence[int]) -> str:
    return str(blocks[0]) if len(blocks) == 1 else f"{min(blocks)}–{max(blocks)}"
