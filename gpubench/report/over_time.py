"""Figures over dates: a panel per number of workers, a line per version, bands of one standard error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from gpubench.history.observed import Observed
from gpubench.report import labels
from gpubench.report.chart_parts import by_variant, finish, short

_WIDTH, _HEIGHT, _COLUMNS = 330, 170, 2
_SIZES = ("nodes", "workers", "workers_per_node")


def charts(observed: Sequence[Observed]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A title and a spec per workload and parameters; a click on a version in the legend dims the others."""
    groups: dict[tuple[tuple[str, Any], ...], list[Observed]] = {}
    for one in observed:
        groups.setdefault(tuple(part for part in one.key if part[0] not in _SIZES), []).append(one)
    names = labels.cell_names([dict(key) for key in groups])
    variants = sorted({one.variant for one in observed})
    for name, found in zip(names, groups.values(), strict=True):
        yield name, _chart(name, found, variants)


def _chart(name: str, found: Sequence[Observed], variants: Sequence[str]) -> dict[str, Any]:
    rated = all(one.bytes and one.workers for one in found)
    rows = [_row(one, rated=rated) for one in sorted(found, key=lambda one: (one.workers or 0, one.variant, one.date))]
    unit = "GB/s per worker" if rated else "seconds"
    chosen = alt.selection_point(fields=["variant"], bind="legend", name="chosen")
    coloured = by_variant(rows, variants)
    x = alt.X("date:T", title=None, axis=alt.Axis(format="%b %y", tickCount=5, grid=False))
    y = alt.Y("value:Q", title=unit, scale=alt.Scale(zero=False))
    tip = [alt.Tooltip(field) for field in ("date:T", "variant:N", "value:Q", "workers:O")]
    band = (
        alt.Chart()
        .mark_area()
        .encode(
            x=x,
            y=alt.Y("low:Q", title=unit, scale=alt.Scale(zero=False)),
            y2="high:Q",
            color=coloured["color"],
            opacity=alt.condition(chosen, alt.value(0.2), alt.value(0.03)),
        )
    )
    faded = alt.condition(chosen, alt.value(1), alt.value(0.15))
    line = alt.Chart().mark_line(strokeWidth=1.5).encode(x=x, y=y, color=coloured["color"], opacity=faded)
    points = alt.Chart().mark_point(filled=True, size=30).encode(x=x, y=y, tooltip=tip, opacity=faded, **coloured)
    panels = (
        alt.layer(band, line, points.add_params(chosen), data=alt.NamedData("figures"))
        .properties(width=_WIDTH, height=_HEIGHT)
        .facet(facet=alt.Facet("workers:O", title="workers in all", sort="ascending"), columns=_COLUMNS)
        .resolve_scale(y="independent")
    )
    spec = finish(panels, f"{name}: {unit} over dates", {"figures": rows})
    del spec["config"]["autosize"]  # panels have sizes of their own; fitted to the page they vanish
    return spec


def _row(one: Observed, *, rated: bool) -> dict[str, Any]:
    value = math.exp(one.log_s)
    if rated and one.bytes and one.workers:
        value = one.bytes / value / one.workers / 1e9
    error = value * (one.se or 0.0)
    return {
        "date": f"{one.date}T00:00:00",
        "variant": one.variant,
        "workers": one.workers or 0,
        "value": short(value),
        "low": short(value - error),
        "high": short(value + error),
    }
