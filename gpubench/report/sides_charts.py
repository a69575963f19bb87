"""The chart of two sides: seconds, and beside them efficiency, over worker threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from gpubench.report import labels
from gpubench.report.chart_parts import by_variant, finish
from gpubench.report.scaling import percent
from gpubench.stats.scaling import SpeedupAtSize, TimeAtSize

_WIDTH, _HEIGHT, _AXIS, _SPACING = 330, 210, 58, 22
_CLIP = 4.0


def curve_chart(name: str, sides: Mapping[str, Sequence[TimeAtSize]]) -> dict[str, Any]:
    """Seconds, and beside them efficiency where the workload has a rule of scaling, over worker threads.

    ``sides`` are the sizes by the label of their side.
    """
    rows = [row for label, sizes in sides.items() for size in sizes for row in _rows(label, size)]
    units = sorted({row["units"] for row in rows})
    coloured = by_variant(rows, list(sides))
    panels = [
        _panel([row for row in rows if row["what"] == what], what, units, coloured)
        for what in ("seconds", "efficiency, %")
        if any(row["what"] == what for row in rows)
    ]
    whole = alt.concat(*panels, columns=len(panels), spacing=_SPACING).resolve_scale(color="shared", shape="shared")
    spec = finish(whole, f"{name}: seconds and efficiency of both sides, with 95 % intervals", {"sizes": rows})
    del spec["config"]["autosize"]  # panels have sizes of their own; fitted to the page they vanish
    fitted = {"columns": len(panels), "axis": _AXIS, "spacing": _SPACING, "least": _WIDTH, "legend": 260}
    return spec | {"usermeta": {"panels": fitted}}


def _rows(label: str, size: TimeAtSize) -> list[dict[str, Any]]:
    found = {"seconds": size.seconds}
    if isinstance(size, SpeedupAtSize):
        found["efficiency, %"] = size.efficiency.times(100)
    return [
        {
            "what": what,
            "variant": label,
            "units": size.at.units,
            "value": interval.value,
            "low": interval.value if interval.low is None else interval.low,
            "high": interval.value if interval.high is None else interval.high,
            "text": labels.seconds(interval.value) if what == "seconds" else percent(interval.times(0.01)),
        }
        for what, interval in found.items()
    ]


def _panel(
    rows: Sequence[Mapping[str, Any]], what: str, units: Sequence[int], coloured: Mapping[str, Any]
) -> alt.LayerChart | alt.FacetChart:
    most = max(row["value"] for row in rows)
    top = min(max(row["high"] for row in rows), _CLIP * most)
    up = alt.Scale(domain=[0, 1.06 * (max(top, 100.0) if what != "seconds" else top)], nice=False)
    y = alt.Y("value:Q", title=None, scale=up, axis=alt.Axis(tickCount=5, minExtent=_AXIS, maxExtent=_AXIS))
    across = alt.Scale(type="log", base=2, domain=[units[0], units[-1]], nice=False, padding=14)
    x = alt.X(
        "units:Q", scale=across, title="worker threads", axis=alt.Axis(values=list(units), format="d", grid=False)
    )
    named = {"variant": "side", "units": "threads", "text": what}
    tip = [alt.Tooltip(f"{field}:N", title=title) for field, title in named.items()]
    data = alt.Chart(alt.NamedData("sizes")).transform_filter(f"datum.what == {what!r}")
    band = data.mark_area(opacity=0.18, clip=True).encode(
        x=x, y=alt.Y("low:Q", title=None, scale=up), y2=alt.Y2("high:Q"), color=coloured["color"]
    )
    line = data.mark_line(strokeWidth=2, clip=True).encode(x=x, y=y, color=coloured["color"])
    points = data.mark_point(filled=True, size=60, opacity=1, clip=True).encode(x=x, y=y, tooltip=tip, **coloured)
    heading = alt.Title(what, anchor="start", fontSize=12, color="var(--ink)")
    return alt.layer(band, line, points).properties(width=_WIDTH, height=_HEIGHT, title=heading)
