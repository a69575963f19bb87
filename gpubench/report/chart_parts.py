"""What all charts share: their looks, and the colours and shapes of the variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
from altair.utils import schemapi

_VARIANT_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"  # as the page


# Checks against the schema take most of the time of a page, and tests make them. For the same reason charts name their
# channels by class: a text makes Altair look through all of its classes.
schemapi.disable_debug_mode()


def by_variant(rows: Sequence[Mapping[str, Any]], variants: Sequence[str]) -> dict[str, Any]:
    """Colour and shape of each variant: the same in every chart of the page, also where one of them has no sample."""
    present = [label for label in variants if any(row["variant"] == label for row in rows)]
    count = len(_VARIANT_SHAPES)
    places = [variants.index(label) for label in present]
    colours = alt.Scale(domain=present, range=[f"var(--series{place % count})" for place in places])
    # A history of years has more versions than colours: from the second round on a colour has another shape.
    shapes = alt.Scale(domain=present, range=[_VARIANT_SHAPES[(place + place // count) % count] for place in places])
    legend = alt.Legend(orient="top", title=None, symbolOpacity=1, symbolSize=70)
    return {
        "color": alt.Color("variant:N", scale=colours, legend=legend, sort=present),
        "shape": alt.Shape("variant:N", scale=shapes, legend=legend, sort=present),
    }


def finish(
    chart: alt.LayerChart | alt.FacetChart | alt.ConcatChart, title: str, values: Mapping[str, Any]
) -> dict[str, Any]:
    """The chart in the page's looks, with its data; arguments as of ``dress``."""
    return dress(chart.to_dict(validate=False), title, values)


def dress(spec: Mapping[str, Any], title: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A Vega-Lite spec in the page's looks, with its data.

    Args:
        spec: its layers name the data sets they draw.
        title: what it shows, for those who can't see it.
        values: rows by the name of their data set.
    """
    # The values join the spec at its end: Altair would copy and check every sample several times over.
    text = {"labelColor": "var(--muted)", "titleColor": "var(--muted)", "labelFontSize": 12, "titleFontSize": 12}
    lines = {"gridColor": "var(--line)", "domainColor": "var(--line)", "tickColor": "var(--line)"}
    config = {
        "font": _FONT,
        "background": "transparent",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "axis": {**text, **lines, "titleFontWeight": "normal"},
        "view": {**spec.get("config", {}).get("view", {}), "stroke": None},
        "legend": text,
    }
    return {"$schema": alt.SCHEMA_URL, **spec, "config": config, "description": title, "datasets": dict(values)}
