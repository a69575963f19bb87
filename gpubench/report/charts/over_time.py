"""Charts of a history: figures over dates, and versions against one of them by size of the cluster."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gpubench.report.charts.style import WIDTH, by_variant, category, data, dressed, layer, quantity
from gpubench.report.sections import Spec

_SIGNED_PERCENT = "(datum.value > 0 ? '+' : '') + format(datum.value, '~r') + ' %'"
_ROOM = 0.4
"""Of the span of a facet's figures: the part of an interval that is farther away is cut."""


def over_dates(rows: Sequence[Mapping[str, Any]], variants: Sequence[str], title: str, *, reverse: bool) -> Spec:
    """A line per version with intervals, change points and unusual days; a facet per size of the cluster.

    Args:
        rows: with ``size date variant value low high change unusual``; bounds may be None; ``change`` is ``slower`` or
            ``faster`` at the first figure of a new level, else empty.
        variants: as for ``style.by_variant``.
        title: what the chart shows.
        reverse: whether small values are on top, so that higher is faster.
    """
    look = by_variant(rows, variants)
    axis = {"format": "%Y-%m-%d", "tickCount": 6, "grid": False, "labelOverlap": True}
    x: Spec = {"field": "date", "type": "temporal", "title": None, "scale": {"type": "utc"}, "axis": axis}
    y = quantity("value", scale={"zero": False, "nice": False, "reverse": reverse}, axis={"tickCount": 5})
    bars = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": look["color"]}
    point = {"x": x, "y": y}
    up = {"condition": {"test": "datum.change == 'slower'", "value": "triangle-down"}, "value": "triangle-up"}
    change, hollow = "datum.change != ''", {"filled": False, "size": 110, "strokeWidth": 1.5}
    layers = [
        # Bars of errors, not areas: those of several versions would cover each other's lines.
        layer("rule", bars, where="isValid(datum.low)", opacity=0.35),
        layer("line", {**point, "color": look["color"]}, strokeWidth=1.5),
        layer("rule", {"x": x}, where=change, color="var(--ink)", strokeDash=[3, 3], opacity=0.5),
        layer("point", {**point, **look}, size=26),
        layer("point", point, where="datum.unusual", color="var(--regression)", **hollow),
        layer("point", {**point, "shape": up}, where=change, color="var(--ink)", **hollow),
    ]
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    cut = [row for size in sizes for row in _cut(rows, size)]
    facet = category("size", sort=sizes)
    return dressed(_grid(cut, facet, 2, 170, layers, y="independent"), title)


def _cut(rows: Sequence[Mapping[str, Any]], size: str) -> list[dict[str, Any]]:
    """The rows of a size; intervals end a little beyond its figures."""
    of_size = [dict(row) for row in rows if row["size"] == size]
    least, most = min(row["value"] for row in of_size), max(row["value"] for row in of_size)
    room = max(most - least, 0.1 * most) * _ROOM
    for row in of_size:
        if row["low"] is not None:
            row["low"], row["high"] = max(row["low"], least - room), min(row["high"], most + room)
    return of_size


def against(rows: Sequence[Mapping[str, Any]], variants: Sequence[str], title: str) -> Spec:
    """Change of the time against the baseline in percent: a facet per version, in it the sizes of the cluster.

    ``rows`` have ``variant size effect low high beyond``; ``beyond`` is a number at the edge.
    """
    sizes = sorted({row["size"] for row in rows}, key=lambda size: [float(part) for part in size.split(" / ")])
    y = quantity("effect", axis={"tickCount": 5, "labelExpr": _SIGNED_PERCENT})
    x = category("size", sort=sizes, title="workers", scale={"domain": sizes}, axis={"labelAngle": 0})
    colour = by_variant(rows, variants)["color"] | {"legend": None}
    interval = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
    point = {"x": x, "y": y}
    layers = [
        layer("rule", {"y": {**y, "field": "zero"}}, color="var(--ink)"),
        layer("rule", interval, strokeWidth=2.5, opacity=0.55),
        layer("point", {**point, "color": colour}, size=70),
        layer("text", {**point, "text": {"field": "beyond"}}, dy=-10, fontSize=11, color="var(--muted)"),
    ]
    facet = category("variant", sort=list(dict.fromkeys(row["variant"] for row in rows)))
    return dressed(_grid([{**row, "zero": 0} for row in rows], facet, 3, 130, layers, y="shared"), title)


def _grid(
    rows: Sequence[Mapping[str, Any]],
    facet: Spec,
    columns: int,
    height: int,
    layers: Sequence[Spec],
    *,
    y: Literal["shared", "independent"],
) -> Spec:
    """A chart of as many columns of facets as fill the page; ``y`` is the scale."""
    inner = {"width": WIDTH // columns - 55, "height": height, "layer": list(layers)}
    resolve = {"scale": {"y": y}, "axis": {"x": "independent", "y": "independent"}}
    place = {"columns": columns, "spacing": {"row": 62, "column": 55}, "bounds": "flush"}
    return {**data(rows), "facet": facet, "spec": inner, "resolve": resolve, **place}
