"""The page of two campaigns or imports side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from gpubench import __version__
from gpubench.report import charts, labels
from gpubench.report.chart_parts import by_variant, finish
from gpubench.report.frame import render
from gpubench.report.scaling import RULES, percent
from gpubench.report.sides import Curves, SideBySide, curves, lone_lines, size_rows
from gpubench.report.tables import NUMBER, WHY, PageTable, verdict_mark
from gpubench.stats.scaling import SpeedupAtSize

_WIDTH, _HEIGHT, _AXIS, _SPACING = 330, 210, 58, 22
_CLIP = 4.0


def html(shown: SideBySide, templates: Mapping[str, str]) -> bytes:
    """The page: one file that asks no network for anything."""
    found = curves(shown)
    specs = {f"sides-{number}": curve_chart(one, shown) for number, one in enumerate(found)}
    if any(one.effect is not None for one in shown.verdicts):
        names = labels.cell_names([one.key for one in shown.verdicts])
        specs["forest"] = charts.forest(shown.verdicts, names, shown.settings.margin)
    context = {
        "first": shown.first,
        "second": shown.second,
        "counts": _counts(shown),
        "margin": f"{100 * shown.settings.margin:g}",
        "notes": shown.notes,
        "forest": "forest" in specs,
        "curves": [
            {"anchor": f"sides-{number}", "name": one.name, "rule": RULES[one.rule], "table": _table(one)}
            for number, one in enumerate(found)
        ],
        "lone": list(lone_lines(shown)),
        "version": __version__,
        "specs": specs,
    }
    return render("report/sides.html.j2", templates, context)


def _table(one: Curves) -> PageTable:
    fields = ("units", "seconds_A", "efficiency_A", "seconds_B", "efficiency_B", "effect")
    rows = [
        [
            *(row[field] for field in fields),
            verdict_mark(row["verdict"]),
            row["reason"],
        ]
        for row in size_rows(one)
    ]
    names = ("Threads", "A time", "A efficiency", "B time", "B efficiency", "B against A [interval]")
    columns = [*((name, NUMBER) for name in names), ("Verdict", ""), ("Why", WHY)]
    return PageTable(f"Both sides of {one.name} at every size, with verdicts", columns, rows, "cards")


def _counts(shown: SideBySide) -> str:
    refused = sum(bool(pair.refused) for pair in shown.pairs)
    words = [verdict.verdict for verdict, pair in zip(shown.verdicts, shown.pairs, strict=True) if not pair.refused]
    said = [f"{words.count(word)} {word}" for word in labels.MARKS if word in words]
    said += [f"{refused} refused: unlike layouts or devices"] if refused else []
    return f"B against A in the {len(shown.pairs)} cells that both have: {', '.join(said)}"


def curve_chart(one: Curves, shown: SideBySide) -> dict[str, Any]:
    """Seconds, and beside them efficiency where the workload has a rule of scaling, over worker threads."""
    sides = {shown.first.letter: shown.first.label, shown.second.letter: shown.second.label}
    rows = [row for letter, sizes in one.sizes.items() for size in sizes for row in _rows(sides[letter], size)]
    units = sorted({row["units"] for row in rows})
    coloured = by_variant(rows, list(sides.values()))
    panels = [
        _panel([row for row in rows if row["what"] == what], what, units, coloured)
        for what in ("seconds", "efficiency, %")
        if any(row["what"] == what for row in rows)
    ]
    whole = alt.concat(*panels, columns=len(panels), spacing=_SPACING).resolve_scale(color="shared", shape="shared")
    spec = finish(whole, f"{one.name}: seconds and efficiency of both sides, with 95 % intervals", {"sizes": rows})
    del spec["config"]["autosize"]  # panels have sizes of their own; fitted to the page they vanish
    fitted = {"columns": len(panels), "axis": _AXIS, "spacing": _SPACING, "least": _WIDTH, "legend": 260}
    return spec | {"usermeta": {"panels": fitted}}


def _rows(label: str, size: Any) -> list[dict[str, Any]]:
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
        x=x, y=alt.Y("low:Q", title=None, scale=up), y2="high:Q", color=coloured["color"]
    )
    line = data.mark_line(strokeWidth=2, clip=True).encode(x=x, y=y, color=coloured["color"])
    points = data.mark_point(filled=True, size=60, opacity=1, clip=True).encode(x=x, y=y, tooltip=tip, **coloured)
    heading = alt.Title(what, anchor="start", fontSize=12, color="var(--ink)")
    return alt.layer(band, line, points).properties(width=_WIDTH, height=_HEIGHT, title=heading)
