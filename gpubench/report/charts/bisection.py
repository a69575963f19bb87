"""Charts of a search: points in their order, and what reverting settings restores."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.report.charts.style import WIDTH, arrows, category, data, layer, quantity, with_style
from gpubench.report.sections import Spec
from gpubench.stats.margin import Margin

SHAPES = {
    "end": ("circle", "ink"),
    "like the fast end": ("triangle-down", "improvement"),
    "like the slow end": ("triangle-up", "regression"),
    "between the ends": ("diamond", "inconclusive"),
    "beyond the ends": ("cross", "broken"),
    "undecided": ("square", "muted"),
}
"""Of the classes of points: shape and colour."""
_SIGNED = "(datum.value > 0 ? '+' : '') + format(datum.value, '~r') + ' %'"
_NO_FIGURE = "M-1,-1L1,1M-1,1L1,-1"
_MOST, _LETTER = 88, 7
"""Pixels from one point to the next, and of a letter."""
_HEIGHT, _ROW, _ROOM = 260, 25, 0.5
_FARTHEST = (-60.0, 160.0)


def along_list(
    rows: Sequence[Mapping[str, Any]], changes: Sequence[Mapping[str, Any]], margin: Margin, first: str, title: str
) -> Spec:
    """Measured points of a list in their order, with their time against the first one in percent, slower on top.

    What lies beyond the picture has an arrow at its edge.

    Args:
        rows: with ``label class effect low high left_out``; an effect or bounds may be None; ``left_out``: how many
            points before it were not measured.
        changes: of each ``low`` and ``high``, numbers of the rows between which it is, and ``text``.
        margin: the band that is grey.
        first: what the first point is called.
        title: what the chart shows.
    """
    points = [{**row, "at": at} for at, row in enumerate(rows)]
    least, most = _domain(rows, 100 * margin)
    step = min(_MOST, (WIDTH - 100) / len(rows))
    tilted = max(len(row["label"]) for row in rows) * _LETTER > step
    names = json.dumps({str(point["at"]): point["label"] for point in points})
    axis = {"values": list(range(len(rows))), "labelExpr": f"{names}[datum.value]", "labelAngle": -40 if tilted else 0}
    axis |= {
        "grid": False,
        "ticks": False,
        "domain": False,
        "labelOverlap": False,
        "labelPadding": 8,
        "labelLimit": 160,
    }
    x = quantity("at", scale={"domain": [-0.5, len(rows) - 0.5], "nice": False}, axis=axis)
    scale = {"domain": [least, most], "clamp": True, "nice": False}
    y = quantity(
        "effect",
        scale=scale,
        axis={"labelExpr": _SIGNED, "tickCount": 6, "titlePadding": 14},
        title=f"time against {first}",
    )
    names_of, looks = [*SHAPES], [*SHAPES.values()]
    colours = {"domain": names_of, "range": [f"var(--{colour})" for _, colour in looks]}
    colour = category("class", legend=None, scale=colours)
    shape = category("class", legend=None, scale={"domain": names_of, "range": [each for each, _ in looks]})
    edges = {"y": {**y, "field": "least"}, "y2": {"field": "most"}}
    ends = {"least": least, "most": most}
    stripes = [{**change, **ends, "middle": (change["low"] + change["high"]) / 2} for change in changes]
    gaps = [
        {"at": point["at"] - 0.5, "effect": least, "text": f"{point['left_out']} more"}
        for point in points
        if point["left_out"]
    ]
    missing = [{**point, "effect": least + 0.06 * (most - least)} for point in points if point["effect"] is None]
    band = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    interval = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
    above = {"x": {**x, "field": "middle"}, "y": {**y, "field": "most"}, "text": {"field": "text"}}
    layers = [
        layer("rect", band, color="var(--band)") | data([{"low": 100 * margin.faster, "high": 100 * margin}]),
        layer("rect", {"x": {**x, "field": "low"}, "x2": {"field": "high"}, **edges}, color="var(--regression)",
              opacity=0.12) | data(stripes),
        layer("text", above, dy=-9, fontSize=12, fontWeight="bold", color="var(--regression)") | data(stripes),
        layer("rule", {"y": y}, color="var(--ink)") | data([{"effect": 0}]),
        layer("text", {"x": x, "y": y, "text": {"field": "text"}}, dy=-7, fontSize=11, color="var(--muted)")
        | data(gaps),
        layer("point", {"x": x, "y": y}, shape=_NO_FIGURE, filled=False, size=50, strokeWidth=2.5,
              stroke="var(--muted)") | data(missing),
        layer("rule", interval, where="isValid(datum.low)", strokeWidth=2.5) | data(points),
        *(each | data(points) for each in arrows(interval, "y", "effect", (least, most))),
        layer("point", {"x": x, "y": y, "color": colour, "shape": shape}, where="isValid(datum.effect)", size=100)
        | data(points),
    ]  # fmt: skip
    return with_style({"width": step * len(rows), "height": _HEIGHT, "layer": layers}, title)


def restored(rows: Sequence[Mapping[str, Any]], margin: float, title: str) -> Spec:
    """What reverting restores, in percent of a whole, with intervals; a facet for each whole.

    What lies beyond the picture has an arrow at its edge.

    Args:
        rows: with ``whole name share low high named``; bounds may be None.
        margin: as a share in percent.
        title: what the chart shows.
    """
    ends = [value for row in rows for value in (row["low"], row["share"], row["high"]) if value is not None]
    least, most = max(_FARTHEST[0], min(-margin * 1.5, *ends)), min(_FARTHEST[1], max(110.0, *ends))
    scale = {"domain": [least, most], "clamp": True, "nice": False}
    axis = {"labelExpr": "format(datum.value, '~r') + ' %'", "tickCount": 7}
    x = quantity("share", scale=scale, axis=axis, title="share that is restored")
    y = category("name", axis={"labelLimit": 330, "labelPadding": 8, "ticks": False, "domain": False})
    which = {"test": "datum.named", "value": "var(--regression)"}
    colour = {"color": {"condition": which, "value": "var(--equivalent)"}}
    interval = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, **colour}
    shape = {"shape": {"condition": {**which, "value": "triangle-up"}, "value": "circle"}}
    layers = [
        layer("rect", {"x": {**x, "field": "from"}, "x2": {"field": "to"}}, where="datum.first", color="var(--band)"),
        layer("rule", {"x": {**x, "field": "none"}}, where="datum.first", color="var(--ink)"),
        layer("rule", {"x": {**x, "field": "all"}}, where="datum.first", color="var(--ink)", strokeDash=[3, 3]),
        layer("rule", interval, where="isValid(datum.low)", strokeWidth=2.5),
        *arrows(interval, "x", "share", (least, most)),
        layer("point", {"x": x, "y": y, **colour, **shape}, size=90),
    ]  # fmt: skip
    wholes = list(dict.fromkeys(row["whole"] for row in rows))
    firsts = {whole: next(row for row in rows if row["whole"] == whole) for whole in wholes}
    fixed = {"from": -margin, "to": margin, "none": 0, "all": 100}
    values = [{**row, **fixed, "first": row is firsts[row["whole"]]} for row in rows]
    inner = {"width": WIDTH - 350, "height": {"step": _ROW}, "layer": layers}
    facet = {"row": category("whole", sort=wholes)}
    whole = {**data(values), "facet": facet, "spec": inner, "spacing": 8, "resolve": {"scale": {"y": "independent"}}}
    return with_style(whole, title)


def _domain(rows: Sequence[Mapping[str, Any]], margin: float) -> tuple[float, float]:
    """Of the effects: intervals that reach far beyond them are cut."""
    effects = [0.0, -margin, margin, *(row["effect"] for row in rows if row["effect"] is not None)]
    room = max(_ROOM * (max(effects) - min(effects)), margin)
    ends = [row[end] for row in rows for end in ("low", "high") if row[end] is not None] or [0.0]
    low, high = min(*ends, *effects), max(*ends, *effects)
    return max(low, min(effects) - room) - margin / 2, min(high, max(effects) + room) + margin / 2
