"""The chart of efficiency over the size of the cluster."""

from collections.abc import Sequence
from typing import Any

from gpubench.report.charts.style import WIDTH, by_variant, data, layer, quantity, with_style
from gpubench.report.sections import Spec
from gpubench.results.curves import Curve
from gpubench.stats.scaling import times_at_sizes

_PERCENT = "format(datum.value, '~r') + ' %'"
_MOST = 400.0
"""Percent: one very wide interval must not compress the others; its bounds are in the table."""


def efficiency(curves: Sequence[Curve], variants: Sequence[str], title: str) -> Spec:
    """Efficiency in percent over worker threads: a line per variant in its interval's band, under the ideal line.

    ``curves`` are of one workload that has a rule of scaling, one per variant.
    """
    rows = [row for curve in curves for row in _rows(curve)]
    ends = [end for row in rows for end in (row["value"], row["high"]) if end is not None]
    scale = {"domain": [0, 1.05 * min(max([100.0, *ends]), _MOST)], "nice": False, "clamp": True}
    y = quantity("value", scale=scale, axis={"labelExpr": _PERCENT, "tickCount": 5})
    units = sorted({row["units"] for row in rows})
    across = {"type": "log", "base": 2, "domain": [units[0], units[-1]], "nice": False, "padding": 12}
    axis = {"values": units, "format": "d", "grid": False}
    x = quantity("units", scale=across, axis=axis, title="worker threads of the cluster")
    look = by_variant(rows, variants)
    line = {"x": x, "y": y, "color": look["color"], "detail": {"field": "layout", "type": "nominal"}}
    band = {**line, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    layers = [
        layer("rule", {"y": {**y, "field": "at"}}, color="var(--ink)", strokeDash=[5, 4]) | data([{"at": 100}]),
        # Bounds that are missing must not be drawn as zero.
        layer("area", band, where="isValid(datum.low)", opacity=0.18),
        layer("line", line, strokeWidth=2),
        layer("point", {"x": x, "y": y, **look}, size=70),
    ]
    return with_style({**data(rows), "width": WIDTH - 50, "height": 240, "layer": layers}, title)


def _rows(curve: Curve) -> list[dict[str, Any]]:
    sizes = times_at_sizes(curve.measured, curve.rule)
    if len(sizes) < 2:  # one size is its own 100 %, and says nothing beside others
        return []
    # Where the same number of threads was laid out in several ways, a line joins those of one kind.
    several = len({size.at.units for size in sizes}) < len(sizes)
    rows: list[dict[str, Any]] = []
    for size in sizes:
        assert size.efficiency is not None
        value = size.efficiency.times(100)
        # The smallest size is 100 % by definition.
        low, high = (value.low, value.high) if rows else (100.0, 100.0)
        layout = size.at.workers_per_node if several else 0
        row = {"variant": curve.variant, "units": size.at.units, "layout": layout}
        rows.append({**row, "value": value.value, "low": low, "high": high})
    return rows
