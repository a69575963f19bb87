"""Both sides of a comparison in seconds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from gpubench.merge.family import Cell
from gpubench.report import labels
from gpubench.report.inputs import ReportInputs
from gpubench.stats.settings import Summary
from gpubench.stats.verdict import Verdict

_NUMBER: Mapping[Summary, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "geomean": statistics.geometric_mean,
    "median": statistics.median,
}


def seconds(inputs: ReportInputs) -> list[tuple[float, float] | None]:
    """Of every verdict: baseline and candidate, in seconds; None where no block has both.

    Each is the geometric mean over the blocks that the verdict used of its runs' numbers under the chosen summary, so
    that the second is the first times one plus the effect.
    """
    table: dict[tuple[object, ...], dict[str, dict[int, Cell]]] = {}
    for cell in inputs.cells:
        if cell.status == "ok" and cell.wall_s:
            sides = table.setdefault((cell.workload.params_id, *cell.outcome.job.place), {})
            sides.setdefault(cell.outcome.run.variant, {})[cell.outcome.block.block] = cell
    return [_pair(one, table.get(_place(one), {}), inputs.settings.summary) for one in inputs.verdicts]


def words(pair: tuple[float, float] | None) -> tuple[str, str]:
    """``("5.213 ms", "7.722 ms")``; two empty texts without numbers."""
    return ("", "") if pair is None else (labels.seconds(pair[0]), labels.seconds(pair[1]))


def _place(one: Verdict) -> tuple[object, ...]:
    return one.key["params_id"], one.key["nodes"], one.key["workers_per_node"]


def _pair(one: Verdict, sides: dict[str, dict[int, Cell]], summary: Summary) -> tuple[float, float] | None:
    before, after = sides.get(one.baseline, {}), sides.get(one.candidate, {})
    # The blocks that count are the first ones: a look that decided the comparison leaves out what came later.
    blocks = sorted(before.keys() & after.keys())[: one.blocks]
    if not blocks:
        return None
    return _mean([before[block] for block in blocks], summary), _mean([after[block] for block in blocks], summary)


def _mean(cells: Sequence[Cell], summary: Summary) -> float:
    return statistics.geometric_mean([_NUMBER[summary](cell.wall_s) for cell in cells])
