"""The chart of one workload's samples in order of time."""

import json
import statistics
from collections.abc import Sequence
from typing import Any

from gpubench.report import labels
from gpubench.report.charts.style import WIDTH, by_variant, data, layer, quantity, with_style
from gpubench.report.sections import Spec
from gpubench.stats.data import CellRun

_SECONDS = "replace(format(datum.value, '~s'), /([^0-9.])?$/, ' $1') + 's'"
_STRAGGLER = 4.0
"""Times the median of the means, above which a sample makes the axis logarithmic."""


def samples(cells: Sequence[CellRun], variants: Sequence[str], title: str) -> Spec:
    """Every timed sample of one workload in order of time: run after run, block after block; a bar marks a run's mean.

    Args:
        cells: those of one workload and node count that have samples.
        variants: as for ``style.by_variant``.
        title: what the chart shows.
    """
    ordered = sorted(cells, key=lambda cell: cell.started_at or 0.0)
    bars = [_bar(number, cell) for number, cell in enumerate(ordered)]
    points = [point for bar, cell in zip(bars, ordered, strict=True) for point in _points(bar, cell)]
    middle = statistics.median(bar["s"] for bar in bars)
    # A straggler must stay in the picture without pressing everything else flat.
    is_far = max(point["s"] for point in points) > _STRAGGLER * middle
    scale = {"type": "log", "nice": False} if is_far else {"zero": False, "nice": True}
    y = quantity("s", scale=scale, axis={"labelExpr": _SECONDS, "tickCount": 5})
    edges, blocks = _block_axis(bars)
    x = quantity("x", axis=blocks, scale={"domain": [0, len(bars)], "nice": False}, title="block, in order of time")
    look = by_variant(bars, variants)
    pale = {"condition": {"test": "datum.used", "value": 0.55}, "value": 0.15}
    dashed = {"condition": {"test": "datum.used", "value": [1, 0]}, "value": [3, 3]}
    mean = {"x": x, "x2": {"field": "end"}, "y": y, "strokeDash": dashed, "color": look["color"]}
    layers = [
        layer("rule", {"x": x}, color="var(--line)") | data([{"x": edge} for edge in edges]),
        layer("point", {"x": x, "y": y, "opacity": pale, **look}, size=22) | data(points),
        layer("rule", mean, strokeWidth=2.5) | data(bars),
    ]
    return with_style({"width": WIDTH - 60, "height": 220, "layer": layers}, title)


def _bar(number: int, cell: CellRun) -> dict[str, Any]:
    mean = labels.short(statistics.fmean(cell.wall_s))
    place = {"x": number, "end": number + 1, "block": cell.block or 0}
    return {**place, "s": mean, "variant": cell.variant, "used": cell.status == "ok"}


def _points(bar: dict[str, Any], cell: CellRun) -> list[dict[str, Any]]:
    """The samples of a run, evenly spaced above its bar in order of time."""
    step = 0.76 / len(cell.wall_s)
    look = {"variant": bar["variant"], "used": bar["used"]}
    return [
        {"x": bar["x"] + 0.12 + step * (number + 0.5), "s": labels.short(wall_s), **look}
        for number, wall_s in enumerate(cell.wall_s)
    ]


def _block_axis(bars: Sequence[dict[str, Any]]) -> tuple[list[int], Spec]:
    """Where one block ends and the next begins, and an axis that names each block at its middle."""
    starts = [number for number, bar in enumerate(bars) if number == 0 or bars[number - 1]["block"] != bar["block"]]
    ends = [*starts[1:], len(bars)]
    names = {f"{(start + end) / 2:g}": str(bars[start]["block"]) for start, end in zip(starts, ends, strict=True)}
    axis = {"values": list(map(float, names)), "labelExpr": f"{json.dumps(names)}[datum.value]"}
    return starts[1:], axis | {"grid": False, "ticks": False, "labelOverlap": True}
