"""The heat map of a table of links."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from gpubench.merge.links import LinkTable
from gpubench.report.chart_parts import finish
from gpubench.stats.links import Outlier

_STEPS = 7
_LARGEST_PX, _CELL_PX = 560, 44
_LABELLED = 24
"""With more workers only every so manieth has its name at the edge; all have it in the tooltip."""


def heat_map(
    table: LinkTable, rates: Mapping[tuple[str, str], float], outliers: Sequence[Outlier], title: str
) -> dict[str, Any]:
    """Median rates, rows send and columns receive, in steps of equal ratio; a cross marks a slow link.

    Args:
        table: of one workload under one variant at one place.
        rates: bytes per second by sender and receiver, of those that have one.
        outliers: those found in it.
        title: what the chart shows, for those who can't see it.
    """
    names = list(table.nodes)
    # A list per sender instead of a row per link: that is a tenth of the bytes.
    rows = [{"from": sender, "rate": [_three(rates.get((sender, name))) for name in names]} for sender in names]
    slow = [{"from": one.names[0], "to": one.names[1]} for one in outliers if one.what == "link"]
    edges = np.geomspace(min(rates.values()), max(*rates.values(), 1.01 * min(rates.values())), _STEPS + 1)
    colours = alt.Scale(
        type="threshold",
        domain=[_three(float(edge)) for edge in edges[1:-1]],
        range=[f"var(--heat{step})" for step in range(_STEPS)],
    )
    every = -(-len(names) // _LABELLED)
    axis = alt.Axis(
        values=names[::every], domain=False, ticks=False, labelPadding=6, labelLimit=110, labelOverlap=False
    )
    x = alt.X("to:N", sort=names, title="receiver", scale=alt.Scale(domain=names), axis=axis)
    y = alt.Y("from:N", sort=names, title="sender", scale=alt.Scale(domain=names), axis=axis)
    legend = alt.Legend(
        orient="bottom",
        title="median rate, bytes per second",
        titleLimit=0,
        format=".3~s",
        gradientLength=320,
    )
    tip = [alt.Tooltip("from:N", title="sender"), alt.Tooltip("to:N", title="receiver"), alt.Tooltip("text:N")]
    step = max(4, min(_CELL_PX, _LARGEST_PX // len(names)))
    cells = (
        alt.Chart(alt.NamedData("rates"))
        .transform_flatten(["rate"])
        .transform_window(i="row_number()", groupby=["from"])
        .transform_calculate(
            to=f"{json.dumps(names)}[datum.i - 1]", text="isValid(datum.rate) ? format(datum.rate, '.3s') + 'B/s' : ''"
        )
        .transform_filter("isValid(datum.rate)")
        .mark_rect(stroke="var(--paper)", strokeWidth=0.5 if step < 12 else 1)
        .encode(x=x, y=y, color=alt.Color("rate:Q", scale=colours, legend=legend), tooltip=tip)
    )
    cross = alt.Chart(alt.NamedData("slow")).encode(x=x, y=y)
    area = step * step
    crosses = [
        cross.mark_point(shape=_CROSS, opacity=1, size=area * 0.7, strokeWidth=5, stroke="var(--paper)"),
        cross.mark_point(shape=_CROSS, opacity=1, size=area * 0.5, strokeWidth=2.5, stroke="var(--regression)"),
    ]
    side = step * len(names)
    chart = alt.layer(cells, *crosses).properties(width=side, height=side)
    spec = finish(chart, title, {"rates": rows, "slow": slow})
    # Of a given size, not the page's: cells are squares, and a closed part of the page has no width.
    spec["config"]["autosize"] = {"type": "pad"}
    return spec


_CROSS = "M-0.5,-0.5L0.5,0.5M0.5,-0.5L-0.5,0.5"


def _three(rate: float | None) -> float | None:
    """Three digits, as an integer where it is one: it is written thousands of times."""
    if rate is None:
        return None
    plain = float(f"{rate:.3g}")
    return int(plain) if plain.is_integer() else plain
