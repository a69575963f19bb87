"""Figures over dates: a panel per size of the cluster, a line per version, its changes, and lanes for what is missing.

After the charts that dask-cuda-benchmarks publishes of its history (``make-multi-node-charts.py``).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from gpubench.report.chart_parts import by_variant, dress

_WIDTH, _HEIGHT, _LANE, _COLUMNS = 330, 170, 11, 2
_AXIS = 58
"""Pixels for the labels of the vertical axis: as many in every panel, so that panels stand below each other."""
_CHOSEN = "chosen == '' || datum.variant == chosen"
_ROOM = 0.4
_WEEKS, _TICKS = 84, 7

KINDS = {
    "failed": ("var(--regression)", 1.0),
    "lost": ("var(--broken)", 0.7),
    "skipped": ("var(--muted)", 0.0),
    "pending": ("var(--muted)", 0.0),
    "unknown": ("var(--muted)", 0.35),
}
"""Colour and filling of a lane's bars: what differs in colour differs in filling too."""


class Edges:
    """Where a date's stretch of the axis begins and ends: half way to its neighbours."""

    def __init__(self, dates: Sequence[dt.date]) -> None:
        """Of ``dates``, ascending, each once."""
        self.dates = [dt.datetime.combine(one, dt.time(), dt.UTC) for one in dates]
        steps = [later - earlier for earlier, later in zip(self.dates, self.dates[1:], strict=False)]
        self.pad = sorted(steps)[len(steps) // 2] / 2 if steps else dt.timedelta(days=1)

    def before(self, date: dt.date) -> float:
        """Half way to the date before, as ``moment``."""
        return self._edge(date, -1)

    def after(self, date: dt.date) -> float:
        """Half way to the next date, as ``moment``."""
        return self._edge(date, 1)

    @property
    def domain(self) -> list[float]:
        """Of the axis."""
        return [_milliseconds(self.dates[0] - self.pad), _milliseconds(self.dates[-1] + self.pad)]

    @property
    def axis(self) -> alt.Axis:
        """Months, or days where there are few weeks; not Vega's own, which quarrels over domains of bars in time."""
        long = self.dates[-1] - self.dates[0] > dt.timedelta(days=_WEEKS)
        ticks = list(_months(self.dates[0], self.dates[-1])) if long else self.dates
        few = ticks[:: math.ceil(len(ticks) / _TICKS)]
        said = f"utcFormat(datum.value, '{'%b %y' if long else '%d %b'}')"
        return alt.Axis(values=[_milliseconds(one) for one in few], labelExpr=said, grid=False, labelOverlap=True)

    def _edge(self, date: dt.date, way: int) -> float:
        at = self.dates.index(dt.datetime.combine(date, dt.time(), dt.UTC))
        own, other = self.dates[at], at + way
        if 0 <= other < len(self.dates):
            # A long silence isn't part of what is missing on the days beside it.
            half = (self.dates[other] - own) / 2
            return _milliseconds(own + max(min(half, 2 * self.pad), -2 * self.pad))
        return _milliseconds(own + way * self.pad)


def moment(date: dt.date) -> float:
    """As Vega takes it: milliseconds, so that no reader's time zone moves a day."""
    return _milliseconds(dt.datetime.combine(date, dt.time(), dt.UTC))


def _milliseconds(at: dt.datetime) -> float:
    return 1000 * at.timestamp()


def _months(first: dt.datetime, last: dt.datetime) -> Iterator[dt.datetime]:
    at = first.replace(day=1)
    while at <= last:
        if at >= first:
            yield at
        at = (at + dt.timedelta(days=32)).replace(day=1)


def panels(
    title: str,
    *,
    names: Mapping[str, str],
    figures: Sequence[Mapping[str, Any]],
    missing: Sequence[Mapping[str, Any]],
    changes: Sequence[Mapping[str, Any]],
    variants: Sequence[str],
    edges: Edges,
) -> dict[str, Any]:
    """The whole chart; whoever sets its parameter ``chosen`` to a version sees the others fade.

    Args:
        title: what it shows, for those who can't see it.
        names: heading of each panel, in order.
        figures: rows with ``panel date day variant value low high text source``; bounds may be None.
        missing: rows with ``panel variant start end kind days missing reason``.
        changes: rows with ``panel date variant value slower said why``.
        variants: labels of the whole page, which decide colour and shape.
        edges: of the dates.
    """
    lanes = [label for label in variants if any(row["variant"] == label for row in missing)]
    coloured = by_variant(figures, variants) if figures else {}
    stacked = [
        _plain(
            _panel(
                panel,
                heading,
                [row for row in figures if row["panel"] == panel],
                coloured=coloured,
                lanes=lanes,
                edges=edges,
            )
        )
        for panel, heading in names.items()
    ]
    drawn = [{**row, "colour": KINDS[row["kind"]][0], "fill": KINDS[row["kind"]][1]} for row in missing]
    values = {"figures": list(figures), "missing": drawn, "changes": list(changes)}
    # Put together by hand: alt.concat copies every panel several times over, which took two thirds of a page's time.
    whole = {
        "concat": stacked,
        "columns": _COLUMNS,
        "spacing": {"row": 26, "column": 22},
        # Each series may be chosen: the page makes the legend's entries buttons for that.
        "params": [{"name": "chosen", "value": ""}],
        "resolve": {"scale": {"color": "shared", "shape": "shared"}},
    }
    spec = dress(whole, title, values)
    del spec["config"]["autosize"]  # panels have sizes of their own; fitted to the page they vanish
    return spec | {"usermeta": {"panels": {"columns": _COLUMNS, "axis": _AXIS, "spacing": 22, "least": _WIDTH}}}


def _plain(panel: alt.LayerChart | alt.FacetChart | alt.VConcatChart) -> dict[str, Any]:
    """Without what only a whole chart has."""
    spec: dict[str, Any] = panel.to_dict()
    return {key: value for key, value in spec.items() if key not in ("$schema", "config")}


def _panel(
    panel: str,
    heading: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    coloured: Mapping[str, Any],
    lanes: Sequence[str],
    edges: Edges,
) -> alt.LayerChart | alt.FacetChart | alt.VConcatChart:
    scale = alt.Scale(domain=edges.domain, nice=False, zero=False)
    below = bool(lanes)
    axis = edges.axis
    upper = _figures(panel, rows, coloured, alt.X("date:Q", title=None, scale=scale, axis=None if below else axis))
    upper = upper.properties(
        width=_WIDTH, height=_HEIGHT, title=alt.Title(heading, anchor="start", fontSize=12, color="var(--ink)")
    )
    if not below:
        return upper
    lane = alt.Axis(
        labelFontSize=9, ticks=False, domain=False, minExtent=_AXIS, maxExtent=_AXIS, labelLimit=_AXIS, title=None
    )
    tip = [alt.Tooltip(f"{name}:N") for name in ("variant", "days", "missing", "reason")]
    lower = (
        alt.Chart(alt.NamedData("missing"))
        .transform_filter(f"datum.panel == {panel!r}")
        .mark_bar(height=_LANE - 4, strokeWidth=1, clip=True)
        .encode(
            x=alt.X("start:Q", title=None, scale=scale, axis=axis),
            x2="end:Q",
            y=alt.Y("variant:N", scale=alt.Scale(domain=list(lanes)), axis=lane),
            fill=alt.Fill("colour:N", scale=None),
            stroke=alt.Stroke("colour:N", scale=None),
            fillOpacity=alt.FillOpacity("fill:Q", scale=None),
            opacity=alt.condition(_CHOSEN, alt.value(1), alt.value(0.15)),
            tooltip=tip,
        )
        .properties(width=_WIDTH, height=_LANE * len(lanes))
    )
    return alt.vconcat(upper, lower, spacing=4)


def _figures(
    panel: str, rows: Sequence[Mapping[str, Any]], coloured: Mapping[str, Any], x: alt.X
) -> alt.LayerChart | alt.FacetChart:
    """Bands, lines, points and changes of one panel."""
    here = f"datum.panel == {panel!r}"
    labels = alt.Axis(minExtent=_AXIS, maxExtent=_AXIS, tickCount=5)
    scale = alt.Scale(domain=_domain(rows), nice=False, zero=False)
    y = alt.Y("value:Q", title=None, scale=scale, axis=labels)
    faded = alt.condition(_CHOSEN, alt.value(1), alt.value(0.12))
    named = {"day": "date", "variant": "version", "value": "value", "text": "time", "source": "source"}
    tip = [alt.Tooltip(f"{field}:N", title=title) for field, title in named.items()]
    data = alt.Chart(alt.NamedData("figures")).transform_filter(here)
    colour = {"color": coloured["color"]} if coloured else {}
    band = (
        data.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_area(clip=True)
        .encode(
            x=x,
            y=alt.Y("low:Q", title=None, scale=scale, axis=labels),
            y2="high:Q",
            opacity=alt.condition(_CHOSEN, alt.value(0.13), alt.value(0.02)),
            **colour,
        )
    )
    line = data.mark_line(strokeWidth=1.5, clip=True).encode(x=x, y=y, opacity=faded, **colour)
    points = data.mark_point(filled=True, size=26, clip=True).encode(x=x, y=y, tooltip=tip, opacity=faded, **coloured)
    changed = alt.Chart(alt.NamedData("changes")).transform_filter(here)
    words = [alt.Tooltip("variant:N"), alt.Tooltip("said:N", title="change"), alt.Tooltip("why:N")]
    rule = changed.mark_rule(color="var(--ink)", strokeDash=[3, 3]).encode(
        x=x, opacity=alt.condition(_CHOSEN, alt.value(0.5), alt.value(0.0)), tooltip=words
    )
    # Two layers, since a scale of shapes of their own would part the legend of the versions in two.
    signs = [
        changed.transform_filter(which)
        .mark_point(filled=False, size=110, strokeWidth=1.6, color="var(--ink)", shape=shape, clip=True)
        .encode(x=x, y=y, opacity=faded, tooltip=words)
        for which, shape in (("datum.slower", "triangle-up"), ("!datum.slower", "triangle-down"))
    ]
    return alt.layer(band, line, rule, points, *signs)


def _domain(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Space for the figures and their bands; a hopeless band is cut."""
    if not rows:
        return [0.0, 1.0]
    values = [row["value"] for row in rows]
    least, most = min(values), max(values)
    room = max(most - least, 0.1 * most) * _ROOM
    lows = [row["low"] for row in rows if row["low"] is not None]
    highs = [row["high"] for row in rows if row["high"] is not None]
    return [max(0.0, min([*lows, least]), least - room), min(max([*highs, most]), most + room)]
