"""Figures over dates: one per cell, version and date, whatever they are from. Pure."""

import dataclasses
import datetime as dt
import math

import numpy as np

from gpubench.results.imports import UNKNOWN, pooled
from gpubench.results.results import Results, RunCircumstances
from gpubench.stats.data import CellRun, Key


@dataclasses.dataclass(frozen=True)
class Figure:
    """What one cell took under one variant on one date.

    Args:
        key: what identifies the cell also beside those of other sources; figures of two machines are never pooled.
        source: the campaign or import.
        log_s: mean over the date's blocks of the log of their mean time in seconds.
        count: how many values ``se`` is from: blocks, or times if there is one block.
        se: relative standard error of the figure, None where nobody knows.
    """

    key: Key
    variant: str
    date: dt.date
    source: str
    log_s: float
    count: int
    se: float | None = None
    workers: int | None = None
    bytes: int | None = None
    circumstances: RunCircumstances = dataclasses.field(default_factory=RunCircumstances)


def figures(results: Results) -> list[Figure]:
    """In the order of cells, variants and dates; runs without a date or a version are in none."""
    groups: dict[tuple[Key, str, dt.date], list[CellRun]] = {}
    for run in results.runs:
        if run.times and run.date is not None and run.variant != UNKNOWN:
            groups.setdefault((run.key, run.variant, run.date), []).append(run)
    cells = {key: number for number, key in enumerate(results.keys)}
    variants = {variant: number for number, variant in enumerate(results.variants)}
    ordered = sorted(groups.items(), key=lambda item: (cells[item[0][0]], variants[item[0][1]], item[0][2]))
    return [_figure(results, runs) for _, runs in ordered]


def _figure(results: Results, runs: list[CellRun]) -> Figure:
    blocks = pooled(runs)
    means = [math.fsum(block.times) / len(block.times) for block in blocks]
    logs = [math.log(mean) for mean in means]
    count, se = len(blocks[0].times), blocks[0].wall_se and blocks[0].wall_se / means[0]
    if len(blocks) > 1:
        count, se = len(blocks), float(np.std(logs, ddof=1) / math.sqrt(len(logs)))
    first = runs[0]
    assert first.date is not None
    circumstances = results.circumstances(first)
    return Figure(
        (*(part for part in first.key if part[0] != "params_id"), *circumstances.machine),
        first.variant,
        first.date,
        results.name,
        float(np.mean(logs)),
        count,
        se,
        first.workers,
        first.bytes,
        circumstances,
    )
