"""Charts of how workloads scale, and of the scheduler's share of their time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from gpubench.merge.curves import ScalingCurve, SchedulerShare
from gpubench.report.chart_parts import by_variant, finish
from gpubench.report.scaling import percent
from gpubench.stats.scaling import SpeedupAtSize, speedups

_PERCENT = "format(datum.value, '~r') + ' %'"
_ROW, _BAR = 38, 18
_CLIP = 400.0
"""Percent: one hopeless interval must not press the others flat; its bounds stand in the table."""


def efficiency(curves: Sequence[ScalingCurve], variants: Sequence[str], title: str) -> dict[str, Any] | None:
    """Efficiency in percent over worker threads: a line per variant in its interval's band, under the ideal line.

    Args:
        curves: of one workload, one per variant.
        variants: labels in the plan's order.
        title: what the chart shows, for those who can't see it.

    Returns:
        None where no variant has two sizes of cluster, or the work says nothing of scaling.
    """
    scaled = {curve.variant: speedups(curve.measured, curve.rule) for curve in curves if curve.rule != "none"}
    if all(len(sizes) < 2 for sizes in scaled.values()):
        return None
    rows = [row for label, sizes in scaled.items() for row in _rows(label, sizes)]
    units = sorted({row["units"] for row in rows})
    # Bounds that are missing must not be drawn as zero; the smallest size is 100 % by definition.
    bands = [row for row in rows if row["low"] is not None and row["high"] is not None]
    largest = max([100.0, *(size["high"] or size["efficiency"] for size in rows)])
    across = alt.Scale(type="log", base=2, domain=[units[0], units[-1]], nice=False, padding=12)
    threads = alt.Axis(values=units, format="d", grid=False)
    x = alt.X("units:Q", scale=across, axis=threads, title="worker threads of the cluster")
    up = alt.Scale(domain=[0, 1.05 * min(largest, _CLIP)], nice=False)
    axis = alt.Axis(labelExpr=_PERCENT, tickCount=5)
    y = alt.Y("efficiency:Q", scale=up, title=None, axis=axis)
    coloured = by_variant(rows, variants)
    tip = [
        alt.Tooltip("variant:N"),
        alt.Tooltip("place:N", title="nodes x workers"),
        alt.Tooltip("text:N", title="efficiency"),
    ]
    data = alt.Chart(alt.NamedData("sizes"))
    ideal = alt.Chart(alt.NamedData("ideal")).mark_rule(color="var(--ink)", strokeDash=[5, 4])
    band = alt.Chart(alt.NamedData("bands")).mark_area(opacity=0.18, clip=True)
    layers = alt.layer(
        ideal.encode(y=alt.Y("at:Q", scale=up, axis=axis)),
        band.encode(
            x=x,
            y=alt.Y("low:Q", scale=up, title=None),
            y2=alt.Y2("high:Q"),
            color=coloured["color"],
            detail=alt.Detail("layout:N"),
        ),
        data.mark_line(strokeWidth=2, clip=True).encode(
            x=x, y=y, color=coloured["color"], detail=alt.Detail("layout:N")
        ),
        data.mark_point(filled=True, size=70, opacity=1, clip=True).encode(x=x, y=y, tooltip=tip, **coloured),
    )
    values = {"sizes": rows, "bands": bands, "ideal": [{"at": 100}]}
    return finish(layers.properties(width="container", height=240), title, values)


def overhead(shares: Sequence[SchedulerShare], names: Sequence[str]) -> dict[str, Any]:
    """The scheduler's share of each workload's time with its interval, out of the whole.

    Args:
        shares: one bar each.
        names: of the bars; two lines where parted by `` · ``.
    """
    rows = [
        {
            "row": name,
            "share": round(100 * one.share.value, 3),
            "low": _percent(one.share.low),
            "high": _percent(one.share.high),
            "whole": 100,
            "text": percent(one.share),
        }
        for one, name in zip(shares, names, strict=True)
    ]
    most = max([100.0, *(100 * (one.share.high or one.share.value) for one in shares)])
    domain = alt.Scale(domain=[0, min(most, _CLIP)], nice=False)
    lines = alt.Axis(
        labelExpr="split(datum.value, ' · ')",
        labelLineHeight=15,
        labelOffset=-7.5,
        labelLimit=200,
        labelPadding=8,
        ticks=False,
        domain=False,
    )
    y = alt.Y("row:N", sort=[str(row["row"]) for row in rows], title=None, axis=lines)
    x = alt.X(
        "share:Q", scale=domain, title="scheduler’s share of the time, %", axis=alt.Axis(tickCount=5, format="~r")
    )
    tip = [alt.Tooltip("row:N", title="workload"), alt.Tooltip("text:N", title="scheduler’s share")]
    data = alt.Chart(alt.NamedData("shares"))
    certain = data.transform_filter("isValid(datum.low) && isValid(datum.high)")
    layers = alt.layer(
        data.mark_bar(color="var(--band)", clip=True, height=_BAR).encode(
            x=alt.X("whole:Q", scale=domain, stack=None), y=y, tooltip=tip
        ),
        data.mark_bar(color="var(--series1)", clip=True, height=_BAR).encode(x=x, y=y, tooltip=tip),
        certain.mark_rule(color="var(--ink)", strokeWidth=2.5, clip=True).encode(
            x=alt.X("low:Q", scale=domain), x2=alt.X2("high:Q"), y=y, tooltip=tip
        ),
    )
    title = "The scheduler's share of the time, with 95 % intervals"
    return finish(layers.properties(width="container", height=_ROW * len(rows)), title, {"shares": rows})


def _rows(label: str, sizes: Sequence[SpeedupAtSize]) -> list[dict[str, Any]]:
    units = [one.at.units for one in sizes]
    # Where the same number of threads was laid out in several ways, a line joins those of one kind.
    several = len(set(units)) < len(units)
    return [
        {
            "variant": label,
            "units": one.at.units,
            "place": f"{one.at.nodes} x {one.at.workers_per_node}",
            "layout": one.at.workers_per_node if several else 0,
            "efficiency": round(100 * one.efficiency.value, 3),
            "low": 100.0 if one is sizes[0] else _percent(one.efficiency.low),
            "high": 100.0 if one is sizes[0] else _percent(one.efficiency.high),
            "text": percent(one.efficiency),
        }
        for one in sizes
    ]


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else round(100 * ratio, 3)
