"""What all charts share: their looks, and the colour and shape of a variant.

Colours are CSS variables of the page's style sheet, so one picture serves light, dark and print. No mark is clipped,
because a picture inside of a page may hold no id that another one has: scales clamp instead.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.report.sections import Spec

WIDTH = 830
"""Pixels of a chart that fills its page, labels of the axis included."""
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_TEXT = {"labelColor": "var(--muted)", "titleColor": "var(--muted)", "labelFontSize": 12, "titleFontSize": 12}
_CONFIG = {
    "aria": False,  # the element around the picture has its description
    "font": "sans-serif",
    "background": "transparent",
    "axis": {**_TEXT, "titleFontWeight": "normal"}
    | {"gridColor": "var(--line)", "domainColor": "var(--line)", "tickColor": "var(--line)"},
    "header": {"title": None, "labelColor": "var(--ink)", "labelFontSize": 12, "labelFontWeight": "bold"}
    | {"labelOrient": "top", "labelAnchor": "start"},
    "legend": {
        **_TEXT,
        "orient": "top",
        "title": None,
        "symbolOpacity": 1,
        "symbolSize": 70,
        "columns": 6,
        "columnPadding": 26,
    },
    "point": {"filled": True, "opacity": 1},
    "padding": {"left": 18, "right": 12, "top": 5, "bottom": 5},  # letters may be wider where they are looked at
    "view": {"stroke": None},
}


def with_style(chart: Spec, title: str) -> Spec:
    """The chart in the page's looks; ``title`` says what it shows to those who can't see it."""
    return {"description": title, **chart, "config": _CONFIG}


def data(rows: Sequence[Mapping[str, Any]]) -> Spec:
    """Rows as the data of a chart or of a layer."""
    return {"data": {"values": list(rows)}}


def layer(mark: str, encoding: Spec, *, where: str = "", **style: Any) -> Spec:
    """A layer of marks of one kind; ``where`` is a Vega expression on ``datum`` that chooses the rows."""
    chosen = {"transform": [{"filter": where}]} if where else {}
    return {"mark": {"type": mark, **style}, "encoding": encoding, **chosen}


def arrows(interval: Spec, along: str, value: str, bounds: tuple[float, float]) -> list[Spec]:
    """Layers of arrows at the edges of a picture, each where an interval goes on beyond it.

    Args:
        interval: encoding of the intervals' layer, whose fields are ``low`` and ``high``.
        along: the channel of their ends, ``x`` or ``y``.
        value: the field of what has no interval.
        bounds: least and most of the scale.
    """
    others = {channel: spec for channel, spec in interval.items() if channel not in (along, f"{along}2")}
    edge = {key: value for key, value in interval[along].items() if key != "field"}
    ends = zip(("low", "high"), "<>", bounds, (270, 90) if along == "x" else (180, 0), strict=True)
    return [
        layer(
            "point",
            {**others, along: {**edge, "datum": bound}},
            where=f"(isValid(datum.{end}) ? datum.{end} : datum.{value}) {beyond} {bound}",
            shape="arrow",
            angle=angle,
            size=260,
        )
        for end, beyond, bound, angle in ends
    ]


def quantity(field: str, **channel: Any) -> Spec:
    """A channel of numbers."""
    return {"field": field, "type": "quantitative", "title": None, **channel}


def category(field: str, **channel: Any) -> Spec:
    """A channel of names, in the order of the rows unless ``channel`` says another."""
    return {"field": field, "type": "nominal", "title": None, "sort": None, **channel}


def by_variant(rows: Sequence[Mapping[str, Any]], variants: Sequence[str]) -> Spec:
    """Colour and shape of each variant: the same in every chart of the page, also where one of them has no sample.

    ``variants`` are the labels of the whole page in the plan's order; the first is the baseline.
    """
    shown = {row["variant"] for row in rows}
    places = {label: place for place, label in enumerate(variants) if label in shown}
    count = len(_SHAPES)
    colours = [f"var(--series{place % count})" for place in places.values()]
    # A history of years has more versions than colours: from the second round on a colour has another shape.
    shapes = [_SHAPES[(place + place // count) % count] for place in places.values()]
    return {
        "color": category("variant", scale={"domain": list(places), "range": colours}),
        "shape": category("variant", scale={"domain": list(places), "range": shapes}),
    }
