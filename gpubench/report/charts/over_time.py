"""The chart of a history: figures over dates."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.report.charts.style import WIDTH, by_variant, category, data, layer, quantity, with_style
from gpubench.report.sections import Spec

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
    return with_style(_facets(rows, layers), title)


def _cut(rows: Sequence[Mapping[str, Any]], size: str) -> list[dict[str, Any]]:
    """The rows of a size; intervals end a little beyond its figures."""
    of_size = [dict(row) for row in rows if row["size"] == size]
    least, most = min(row["value"] for row in of_size), max(row["value"] for row in of_size)
    room = max(most - least, 0.1 * most) * _ROOM
    for row in of_size:
        if row["low"] is not None:
            row["low"], row["high"] = max(row["low"], least - room), min(row["high"], most + room)
    return of_size


def _facets(rows: Sequence[Mapping[str, Any]], layers: Sequence[Spec]) -> Spec:
    """Two columns of facets, one for each size of the cluster, each with a scale of its own."""
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    cut = [row for size in sizes for row in _cut(rows, size)]
    inner = {"width": WIDTH // 2 - 55, "height": 170, "layer": list(layers)}
    resolve = {"scale": {"y": "independent"}, "axis": {"x": "independent", "y": "independent"}}
    place = {"columns": 2, "spacing": {"row": 62, "column": 55}, "bounds": "flush"}
    return {**data(cut), "facet": category("size", sort=sizes), "spec": inner, "resolve": resolve, **place}
