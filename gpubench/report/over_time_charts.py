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
_NARROW, _LOW, _MOST_COLUMNS = 200, 130, 3
_SIGNED = "(datum.value > 0 ? '+' : '') + format(datum.value, '~r') + ' %'"
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
    unusual: Sequence[Mapping[str, Any]],
    reverse: bool,
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
        unusual: rows with ``panel date variant value said``.
        reverse: whether small values stand on top, so that up is faster.
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
                reverse=reverse,
            )
        )
        for panel, heading in names.items()
    ]
    drawn = [{**row, "colour": KINDS[row["kind"]][0], "fill": KINDS[row["kind"]][1]} for row in missing]
    values = {"figures": list(figures), "missing": drawn, "changes": list(changes), "unusual": list(unusual)}
    return _together(stacked, title, values, _COLUMNS, _WIDTH)


def against(title: str, rows: Sequence[Mapping[str, Any]], variants: Sequence[str]) -> dict[str, Any]:
    """Speed against the baseline in percent, up is faster: a panel per version, in it the sizes of the cluster.

    Args:
        title: what it shows, for those who can't see it.
        rows: ``variant size place speed low high said beyond dates``; ``beyond`` is the number of a dot at the edge.
        variants: labels of the whole page, which decide the colour.
    """
    shown = list(dict.fromkeys(row["variant"] for row in rows))
    sizes = sorted({row["size"] for row in rows}, key=lambda size: [float(part) for part in size.split(" / ")])
    ends = [row[name] for row in rows for name in ("low", "high")]
    room = 0.06 * max(max(ends) - min(ends), 5)
    y = alt.Y(
        "speed:Q",
        title=None,
        scale=alt.Scale(domain=[min([0, *ends]) - room, max([0, *ends]) + room], nice=False),
        axis=alt.Axis(minExtent=_AXIS, maxExtent=_AXIS, tickCount=5, labelExpr=_SIGNED),
    )
    x = alt.X("size:N", sort=sizes, title="workers", scale=alt.Scale(domain=sizes), axis=alt.Axis(labelAngle=0))
    tip = [alt.Tooltip(f"{name}:N") for name in ("variant", "place", "said", "dates")]
    colour = by_variant(rows, variants)["color"].legend(None)
    panels_ = []
    for label in shown:
        data = alt.Chart(alt.NamedData("versions")).transform_filter(f"datum.variant == {label!r}")
        zero = alt.Chart(alt.NamedData("zero")).mark_rule(color="var(--ink)").encode(y=alt.Y("at:Q", title=None))
        bars = data.mark_rule(strokeWidth=2.5, opacity=0.55).encode(
            x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=colour
        )
        dots = data.mark_point(filled=True, size=70, opacity=1).encode(x=x, y=y, color=colour, tooltip=tip)
        far = data.transform_filter("datum.beyond != ''").mark_text(dy=-10, fontSize=11, color="var(--muted)")
        edge = far.encode(x=x, y=y, text=alt.Text("beyond:N"))
        heading = alt.Title(label, anchor="start", fontSize=12, color="var(--ink)")
        panels_.append(_plain(alt.layer(zero, bars, dots, edge).properties(width=_NARROW, height=_LOW, title=heading)))
    return _together(panels_, title, {"versions": list(rows), "zero": [{"at": 0}]}, _MOST_COLUMNS, _NARROW)


def _together(
    stacked: Sequence[Mapping[str, Any]], title: str, values: Mapping[str, Any], columns: int, least: int
) -> dict[str, Any]:
    """Panels beside each other; the page fits them into its width."""
    # Put together by hand: alt.concat copies every panel several times over, which took two thirds of a page's time.
    whole = {
        "concat": list(stacked),
        "columns": columns,
        "spacing": {"row": 26, "column": 22},
        # Each series may be chosen: the page makes the legend's entries buttons for that.
        "params": [{"name": "chosen", "value": ""}],
        "resolve": {"scale": {"color": "shared", "shape": "shared"}},
    }
    spec = dress(whole, title, values)
    del spec["config"]["autosize"]  # panels have sizes of their own; fitted to the page they vanish
    return spec | {"usermeta": {"panels": {"columns": columns, "axis": _AXIS, "spacing": 22, "least": least}}}


def _plain(panel: alt.LayerChart | alt.FacetChart | alt.VConcatChart) -> dict[str, Any]:
    """Without what only a whole chart has."""
    spec: dict[str, Any] = panel.to_dict(validate=False)
    return {key: value for key, value in spec.items() if key not in ("$schema", "config")}


def _panel(
    panel: str,
    heading: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    coloured: Mapping[str, Any],
    lanes: Sequence[str],
    edges: Edges,
    reverse: bool,
) -> alt.LayerChart | alt.FacetChart | alt.VConcatChart:
    scale = alt.Scale(domain=edges.domain, nice=False, zero=False)
    below = bool(lanes)
    axis = edges.axis
    upper = _figures(
        panel, rows, coloured, alt.X("date:Q", title=None, scale=scale, axis=None if below else axis), reverse=reverse
    )
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
            x2=alt.X2("end:Q"),
            y=alt.Y("variant:N", scale=alt.Scale(domain=list(lanes)), axis=lane),
            fill=alt.Fill("colour:N", scale=None),
            stroke=alt.Stroke("colour:N", scale=None),
            fillOpacity=alt.FillOpacity("fill:Q", scale=None),
            opacity=_faded(1, 0.15),
            tooltip=tip,
        )
        .properties(width=_WIDTH, height=_LANE * len(lanes))
    )
    return alt.vconcat(upper, lower, spacing=4)


def _figures(
    panel: str, rows: Sequence[Mapping[str, Any]], coloured: Mapping[str, Any], x: alt.X, *, reverse: bool
) -> alt.LayerChart | alt.FacetChart:
    """Bands, lines, points and changes of one panel."""
    here = f"datum.panel == {panel!r}"
    labels = alt.Axis(minExtent=_AXIS, maxExtent=_AXIS, tickCount=5)
    scale = alt.Scale(domain=_domain(rows), nice=False, zero=False, reverse=reverse)
    y = alt.Y("value:Q", title=None, scale=scale, axis=labels)
    faded = _faded(1, 0.12)
    named = {"day": "date", "variant": "version", "value": "value", "text": "time", "source": "source"}
    tip = [alt.Tooltip(f"{field}:N", title=title) for field, title in named.items()]
    data = alt.Chart(alt.NamedData("figures")).transform_filter(here)
    colour = {"color": coloured["color"]} if coloured else {}
    # Bars of errors, not areas: those of several versions would cover each other's lines.
    bars = (
        data.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_rule(clip=True, strokeWidth=1)
        .encode(
            x=x,
            y=alt.Y("low:Q", title=None, scale=scale, axis=labels),
            y2=alt.Y2("high:Q"),
            opacity=_faded(0.35, 0.03),
            **colour,
        )
    )
    line = data.mark_line(strokeWidth=1.5, clip=True).encode(x=x, y=y, opacity=faded, **colour)
    points = data.mark_point(filled=True, size=26, clip=True).encode(x=x, y=y, tooltip=tip, opacity=faded, **coloured)
    changed = alt.Chart(alt.NamedData("changes")).transform_filter(here)
    words = [alt.Tooltip("variant:N"), alt.Tooltip("said:N", title="change"), alt.Tooltip("why:N")]
    rule = changed.mark_rule(color="var(--ink)", strokeDash=[3, 3]).encode(x=x, opacity=_faded(0.5, 0.0), tooltip=words)
    # Two layers, since a scale of shapes of their own would part the legend of the versions in two.
    signs = [
        changed.transform_filter(which)
        .mark_point(filled=False, size=110, strokeWidth=1.6, color="var(--ink)", shape=shape, clip=True)
        .encode(x=x, y=y, opacity=faded, tooltip=words)
        for which, shape in (("datum.slower", "triangle-down"), ("!datum.slower", "triangle-up"))
    ]
    odd = alt.Chart(alt.NamedData("unusual")).transform_filter(here)
    rings = odd.mark_point(filled=False, size=120, strokeWidth=1.4, color="var(--regression)", clip=True).encode(
        x=x, y=y, opacity=faded, tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("said:N", title="unusual")]
    )
    return alt.layer(bars, line, rule, points, rings, *signs)


def _faded(chosen: float, others: float) -> alt.OpacityValue:
    """Opacity of the version that the reader chose, and of the others."""
    return alt.OpacityValue(**alt.condition(_CHOSEN, alt.value(chosen), alt.value(others)))


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
