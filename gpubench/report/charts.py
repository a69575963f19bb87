"""Vega-Lite specs of all charts, and the charts as files of their own, in the page's light colours.

Colours are CSS variables, so one chart serves light, dark and print. In all functions, ``title`` says what the chart
shows to those who can't see it, and ``variants`` are labels in the plan's order (of the whole page where it has several
charts), which decide colour and shape; the first is the baseline. The charts over dates have a panel per size of the
cluster, a line per version, its changes, and lanes for what is missing, after those that dask-cuda-benchmarks publishes
of its history (``make-multi-node-charts.py``).
"""

import datetime as dt
import json
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import altair as alt
import numpy as np
import vl_convert
from altair.utils import schemapi

from gpubench.errors import DataError
from gpubench.merge.links import LinkTable
from gpubench.model.text import all_visible
from gpubench.report import condense, labels
from gpubench.report.scaling import percent
from gpubench.report.sections import Chart
from gpubench.results.curves import Curve
from gpubench.stats.data import CellRun
from gpubench.stats.links import Outlier
from gpubench.stats.scaling import SpeedupAtSize, TimeAtSize, speedups
from gpubench.stats.verdict import Verdict

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


def tips(*plain: str, **titled: str) -> list[alt.Tooltip]:
    """Tooltips of fields, with their titles where these are others than the names."""
    return [*(alt.Tooltip(f"{name}:N") for name in plain), *(alt.Tooltip(f"{k}:N", title=v) for k, v in titled.items())]


def layered(*layers: alt.Chart, **properties: Any) -> dict[str, Any]:
    """The spec of a chart with these layers and properties.

    ``alt.layer`` gives the same, but it copies every layer several times.
    """
    specs = [layer.to_dict(validate=False) for layer in layers]
    whole = {"config": specs[0]["config"], **properties}
    parts = [{key: value for key, value in spec.items() if key not in ("$schema", "config")} for spec in specs]
    if all(part["data"] == parts[0]["data"] for part in parts):
        whole["data"] = parts[0]["data"]
        parts = [{key: value for key, value in part.items() if key != "data"} for part in parts]
    return {**whole, "layer": parts}


def dress(spec: Mapping[str, Any], title: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A Vega-Lite spec in the page's looks; ``values`` are the rows of each data set that its layers name."""
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


VERDICT_WORDS = tuple(labels.MARKS)
_VERDICT_SHAPES = ("triangle-up", "triangle-down", "circle", "diamond", "cross")

_ROW = 25
_PARTED = " · "
_CLIP = 4.0


def forest(verdicts: Sequence[Verdict], names: Sequence[str], margin: float) -> dict[str, Any]:
    """Effects with their intervals over the band of ±margin, in percent, slower to the right.

    Rows stand together by pair of variants, below a heading where there are several. The axis is almost even within
    the margin and logarithmic beyond, so that the margin stays visible beside a workload that is ten times noisier.
    """
    shown = [(one, name) for one, name in zip(verdicts, names, strict=True) if one.effect is not None]
    pairs = list(dict.fromkeys(labels.pair(one) for one, _ in shown))
    shown.sort(key=lambda pair: pairs.index(labels.pair(pair[0])))
    rows: list[dict[str, Any]] = [
        {
            "row": f"{name}{_PARTED}{labels.pair(one)}",
            "effect": _percent(one.effect),
            "low": _percent(one.shown[0]),
            "high": _percent(one.shown[1]),
            "verdict": one.verdict,
            "text": f"{labels.effect(one)} {labels.interval(one)}",
            "pair": labels.pair(one),
        }
        for one, name in shown
    ]
    bounds = _domain(rows, 100 * margin)
    domain = alt.Scale(type="symlog", constant=100 * margin, domain=bounds, nice=False, zero=False, padding=8)
    # What lies beyond the picture says so at its edge.
    for row in rows:
        row["beyond"] = 1 if row["effect"] > bounds[1] else -1 if row["effect"] < bounds[0] else None
        ends = () if row["low"] is None else ((-1, row["low"] < bounds[0]), (1, row["high"] > bounds[1]))
        row["cut"] = [way for way, is_cut in ends if is_cut]
        row["arrow"] = f"{row['text'].strip()} →" if row["effect"] > 0 else f"← {row['text'].strip()}"
    order: list[str] = []
    for row in rows:
        heading = f"{_PARTED}{row['pair']}"
        order += [heading] if len(pairs) > 1 and heading not in order else []
        order.append(row["row"])
    heads = f"indexof(datum.value, '{_PARTED}') == 0"
    lines = alt.Axis(
        labelExpr=f"{heads} ? split(datum.value, '{_PARTED}')[1] : split(datum.value, '{_PARTED}')[0]",
        labelFontWeight={"condition": {"test": heads, "value": "bold"}, "value": "normal"},
        labelLimit=200,
        labelPadding=8,
        ticks=False,
        domain=False,
    )
    y = alt.Y("row:N", sort=order, scale=alt.Scale(domain=order), title=None, axis=lines)
    verdict_words = alt.Scale(domain=list(VERDICT_WORDS), range=[f"var(--{word})" for word in VERDICT_WORDS])
    shapes = alt.Scale(domain=list(VERDICT_WORDS), range=list(_VERDICT_SHAPES))
    colour = alt.Color("verdict:N", scale=verdict_words, legend=None)
    tip = [*tips(row="comparison"), *tips("text", "verdict")]
    data = alt.Chart(alt.NamedData("rows"))
    band = alt.Chart(alt.NamedData("band")).mark_rect(color="var(--band)", clip=True)
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(color="var(--ink)", strokeWidth=1)
    ticks = alt.Axis(values=_ticks(bounds, 100 * margin), labelExpr=_SIGNED, labelOverlap="greedy")
    x = alt.X("low:Q", scale=domain, title="change of the time in %, slower →", axis=ticks)
    whole = layered(
        band.encode(x=x, x2=alt.X2("high:Q")),
        zero.encode(x=alt.X("at:Q", scale=domain)),
        data.mark_rule(strokeWidth=2.5, clip=True).encode(x=x, x2=alt.X2("high:Q"), y=y, color=colour, tooltip=tip),
        data.mark_point(filled=True, size=90, opacity=1, clip=True).encode(
            x=alt.X("effect:Q", scale=domain),
            y=y,
            color=colour,
            shape=alt.Shape("verdict:N", scale=shapes, legend=None),
            tooltip=tip,
        ),
        *(
            data.transform_filter(f"datum.beyond == {way}")
            .mark_text(align="right" if way > 0 else "left", dx=-6 * way, fontSize=11)
            .encode(
                x=alt.datum(bounds[way > 0], scale=domain), y=y, color=colour, text=alt.Text("arrow:N"), tooltip=tip
            )
            for way in (1, -1)
            if any(row["beyond"] == way for row in rows)
        ),
        *(
            data.transform_filter(f"datum.beyond == null && indexof(datum.cut, {way}) >= 0")
            .mark_point(filled=True, size=60, opacity=1, shape="triangle-right" if way > 0 else "triangle-left")
            .encode(x=alt.datum(bounds[way > 0], scale=domain), y=y, color=colour, tooltip=tip)
            for way in (1, -1)
            if any(way in row["cut"] and row["beyond"] is None for row in rows)
        ),
        width="container",
        height=_ROW * len(order),
    )
    values = {"rows": rows, "band": [{"low": -100 * margin, "high": 100 * margin}], "zero": [{"at": 0}]}
    return dress(whole, "Effects with their intervals", values)


def samples(
    cells: Sequence[CellRun], variants: Sequence[str], title: str, *, means_only: bool, condensed: bool = False
) -> dict[str, Any]:
    """Every timed sample of one workload in order of time: run after run, block after block; a bar marks a run's mean.

    Args:
        cells: those of one workload and node count that have samples.
        means_only: leave the single samples out.
        condensed: a bar for each variant in a stretch of blocks instead of one for each run.
    """
    ordered = sorted(cells, key=lambda cell: cell.started_at or 0.0)
    rows = (
        _stretch_rows(ordered, variants)
        if condensed
        else [_run_row(number, cell, means_only=means_only) for number, cell in enumerate(ordered)]
    )
    largest, middle = max(max(row["s"]) for row in rows), statistics.median(row["mean"] for row in rows)
    # A straggler must stay in the picture without pressing everything else flat.
    scale = alt.Scale(type="log", nice=False) if largest > 4 * middle else alt.Scale(zero=False, nice=True)
    y = alt.Y("s:Q", scale=scale, title=None, axis=alt.Axis(labelExpr=_SECONDS, tickCount=5))
    edges, blocks = _block_axis(rows)
    across = alt.Scale(domain=[0, len(rows)], nice=False)
    coloured = by_variant(rows, variants)
    tip = [*tips("variant"), alt.Tooltip("block:O"), *tips(label="mean"), *tips("status")]
    data = alt.Chart(alt.NamedData("runs"))
    points = (
        data.transform_flatten(["s"])
        .transform_window(i="row_number()", groupby=["x"])
        .transform_calculate(at="datum.x + 0.12 + 0.76 * (datum.i - 0.5) / datum.n")
        .mark_point(filled=True, size=22)
        .encode(
            x=alt.X("at:Q", axis=blocks, scale=across, title="block, in order of time"),
            y=y,
            opacity=alt.OpacityValue(**alt.condition(_COUNTS, alt.value(0.55), alt.value(0.15))),
            tooltip=tip,
            **coloured,
        )
    )
    means = data.mark_rule(strokeWidth=2.5).encode(
        x=alt.X("x:Q"),
        x2=alt.X2("x2:Q"),
        y=alt.Y("mean:Q", scale=scale),
        strokeDash=alt.StrokeDashValue(**alt.condition(_COUNTS, alt.value([1, 0]), alt.value([3, 3]))),
        color=coloured["color"],
        tooltip=tip,
    )
    between = alt.Chart(alt.NamedData("edges")).mark_rule(color="var(--line)").encode(x=alt.X("edge:Q"))
    values = {"runs": rows, "edges": [{"edge": edge} for edge in edges]}
    return dress(layered(between, points, means, width="container", height=220), title, values)


_COUNTS = "datum.status == 'ok'"
_SECONDS = "replace(format(datum.value, '~s'), /([^0-9.])?$/, ' $1') + 's'"
_SIGNED = "(datum.value > 0 ? '+' : '') + format(datum.value, '~r')"


def _run_row(number: int, cell: CellRun, *, means_only: bool) -> dict[str, Any]:
    mean = statistics.fmean(cell.wall_s)
    shown = [mean] if means_only else cell.wall_s
    return _bar_row(number, cell.variant, cell.block or 0, mean, shown, status=cell.status)


def _bar_row(
    number: int, variant: str, block: int | str, mean: float, shown: Sequence[float], *, status: str = "ok"
) -> dict[str, Any]:
    return {
        "x": number,
        "x2": number + 1,
        "n": len(shown),
        "variant": variant,
        "block": block,
        "mean": labels.short(mean),
        "status": status,
        "label": labels.seconds(mean),
        "s": [labels.short(value) for value in shown],
    }


def _stretch_rows(ordered: Sequence[CellRun], variants: Sequence[str]) -> list[dict[str, Any]]:
    found = [
        (name, variant, mean)
        for name, cells in condense.stretches(ordered, variants)
        for variant in variants
        if (mean := condense.mean(cells[variant])) is not None
    ]
    return [_bar_row(number, variant, name, mean, [mean]) for number, (name, variant, mean) in enumerate(found)]


def _block_axis(rows: Sequence[Mapping[str, Any]]) -> tuple[list[int], alt.Axis]:
    """Where one block ends and the next begins, and an axis that names each block at its middle."""
    starts = [
        row["x"]
        for before, row in zip([None, *rows], rows, strict=False)
        if not before or before["block"] != row["block"]
    ]
    ends = [*starts[1:], len(rows)]
    middles = [(start + end) / 2 for start, end in zip(starts, ends, strict=True)]
    words = [str(rows[start]["block"]) for start in starts]
    name = f"{json.dumps(words)}[indexof({json.dumps(middles)}, datum.value)]"
    return starts[1:], alt.Axis(values=middles, labelExpr=name, grid=False, ticks=False, labelOverlap=True)


def _ticks(bounds: Sequence[float], margin: float) -> list[float]:
    """Zero, the margin, and round numbers beyond it, in percent."""
    beyond = [step * 10**power for power in range(4) for step in (1, 3)]
    sizes = [margin, *(size for size in beyond if size > 1.6 * margin)]
    ticks = [0, *sizes, *(-size for size in [*sizes, 60, 90])]
    return [tick for tick in ticks if bounds[0] <= tick <= bounds[1]]


def _domain(rows: Sequence[Mapping[str, Any]], margin: float) -> list[float]:
    """Space for effects and band. A very wide interval mustn't hide the others: it is cut, and is in the table.

    An effect without an interval doesn't extend the space if others have intervals.
    """
    rows = [row for row in rows if row["low"] is not None] or rows
    effects = [abs(row["effect"]) for row in rows]
    bound = _CLIP * max([margin, *effects])
    lows = [row["effect"] if row["low"] is None else row["low"] for row in rows]
    highs = [row["effect"] if row["high"] is None else row["high"] for row in rows]
    return [max(min([*lows, -1.5 * margin]), -bound), min(max([*highs, 1.5 * margin]), bound)]


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else round(100 * ratio, 3)


_STEPS = 7
_LARGEST_PX, _CELL_PX = 560, 44
_LABELLED = 24
"""With more workers, only every n-th has its name at the edge; all have it in the tooltip."""


def heat_map(
    table: LinkTable, rates: Mapping[tuple[str, str], float], outliers: Sequence[Outlier], title: str
) -> dict[str, Any]:
    """Median rates, rows send and columns receive, in steps of equal ratio; a cross marks a slow link.

    ``rates`` are bytes per second by sender and receiver, of those that have one.
    """
    names = list(table.nodes)
    # A list per sender instead of a row per link: that is a tenth of the bytes.
    rows = [{"from": sender, "rate": [_three(rates.get((sender, name))) for name in names]} for sender in names]
    slow = [{"from": one.names[0], "to": one.names[1]} for one in outliers if one.what == "link"]
    edges = np.geomspace(min(rates.values()), max(*rates.values(), 1.01 * min(rates.values())), _STEPS + 1)
    colours = alt.Scale(
        type="threshold",
        domain=[_three(float(edge)) for edge in edges[1:-1]],
        range=[f"var(--heat{step})" for step in range(_STEPS)],
    )
    every = -(-len(names) // _LABELLED)
    axis = alt.Axis(
        values=names[::every], domain=False, ticks=False, labelPadding=6, labelLimit=110, labelOverlap=False
    )
    x = alt.X("to:N", sort=names, title="receiver", scale=alt.Scale(domain=names), axis=axis)
    y = alt.Y("from:N", sort=names, title="sender", scale=alt.Scale(domain=names), axis=axis)
    words = "median rate, bytes per second"
    legend = alt.Legend(orient="bottom", title=words, titleLimit=0, format=".3~s", gradientLength=320)
    tip = [*tips(**{"from": "sender"}, to="receiver"), *tips("text")]
    step = max(4, min(_CELL_PX, _LARGEST_PX // len(names)))
    cells = (
        alt.Chart(alt.NamedData("rates"))
        .transform_flatten(["rate"])
        .transform_window(i="row_number()", groupby=["from"])
        .transform_calculate(
            to=f"{json.dumps(names)}[datum.i - 1]", text="isValid(datum.rate) ? format(datum.rate, '.3s') + 'B/s' : ''"
        )
        .transform_filter("isValid(datum.rate)")
        .mark_rect(stroke="var(--paper)", strokeWidth=0.5 if step < 12 else 1)
        .encode(x=x, y=y, color=alt.Color("rate:Q", scale=colours, legend=legend), tooltip=tip)
    )
    cross = alt.Chart(alt.NamedData("slow")).encode(x=x, y=y)
    area = step * step
    crosses = [
        cross.mark_point(shape=_CROSS, opacity=1, size=area * 0.7, strokeWidth=5, stroke="var(--paper)"),
        cross.mark_point(shape=_CROSS, opacity=1, size=area * 0.5, strokeWidth=2.5, stroke="var(--regression)"),
    ]
    side = step * len(names)
    spec = dress(layered(cells, *crosses, width=side, height=side), title, {"rates": rows, "slow": slow})
    # Of a given size, not the page's: cells are squares, and a closed part of the page has no width.
    spec["config"]["autosize"] = {"type": "pad"}
    return spec


_CROSS = "M-0.5,-0.5L0.5,0.5M0.5,-0.5L-0.5,0.5"


def _three(rate: float | None) -> float | None:
    """Three digits, as an integer if possible: such numbers are written thousands of times."""
    if rate is None:
        return None
    plain = float(f"{rate:.3g}")
    return int(plain) if plain.is_integer() else plain


_PANEL_WIDTH, _DATES_HEIGHT, _LANE, _COLUMNS, _SPACING = 330, 170, 11, 2, 22
_PANEL_AXIS = 58
"""Pixels for the labels of the vertical axis: as many in every panel, so that panels stand below each other."""
_NARROW, _LOW, _MOST_COLUMNS = 200, 130, 3
_SIGNED_PERCENT = "(datum.value > 0 ? '+' : '') + format(datum.value, '~r') + ' %'"
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
"""Colour and pattern of a lane's bars: different colours have different patterns, too."""


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
        """Months, or days where there are few weeks; not Vega's own axis, which fails for domains of bars in time."""
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
    """The whole chart; if its parameter ``chosen`` is set to a version, the others fade.

    Args:
        names: heading of each panel, in order.
        figures: rows with ``panel date day variant value low high text source``; bounds may be None.
        missing: rows with ``panel variant start end kind days missing reason``.
        changes: rows with ``panel date variant value slower said why``.
        unusual: rows with ``panel date variant value said``.
        reverse: whether small values are on top, so that higher is faster.
    """
    lanes = [label for label in variants if any(row["variant"] == label for row in missing)]
    coloured = by_variant(figures, variants) if figures else {}
    stacked = []
    for panel, heading in names.items():
        rows = [row for row in figures if row["panel"] == panel]
        drawn_panel = _dates_panel(panel, heading, rows, coloured=coloured, lanes=lanes, edges=edges, reverse=reverse)
        stacked.append(_plain(drawn_panel))
    drawn = [{**row, "colour": KINDS[row["kind"]][0], "fill": KINDS[row["kind"]][1]} for row in missing]
    values = {"figures": list(figures), "missing": drawn, "changes": list(changes), "unusual": list(unusual)}
    return _together(stacked, title, values, _COLUMNS, _PANEL_WIDTH)


def against(title: str, rows: Sequence[Mapping[str, Any]], variants: Sequence[str]) -> dict[str, Any]:
    """Change of the time against the baseline in percent: a panel per version, in it the sizes of the cluster.

    ``rows`` have ``variant size place effect low high said beyond dates``; ``beyond`` is a number at the edge.
    """
    shown = list(dict.fromkeys(row["variant"] for row in rows))
    sizes = sorted({row["size"] for row in rows}, key=lambda size: [float(part) for part in size.split(" / ")])
    ends = [row[name] for row in rows for name in ("low", "high")]
    room = 0.06 * max(max(ends) - min(ends), 5)
    y = alt.Y(
        "effect:Q",
        title=None,
        scale=alt.Scale(domain=[min([0, *ends]) - room, max([0, *ends]) + room], nice=False),
        axis=alt.Axis(minExtent=_PANEL_AXIS, maxExtent=_PANEL_AXIS, tickCount=5, labelExpr=_SIGNED_PERCENT),
    )
    x = alt.X("size:N", sort=sizes, title="workers", scale=alt.Scale(domain=sizes), axis=alt.Axis(labelAngle=0))
    tip = tips("variant", "place", "said", "dates")
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
        "spacing": {"row": 26, "column": _SPACING},
        # Each series may be chosen: the page makes the legend's entries buttons for that.
        "params": [{"name": "chosen", "value": ""}],
        "resolve": {"scale": {"color": "shared", "shape": "shared"}},
    }
    spec = dress(whole, title, values)
    del spec["config"]["autosize"]  # panels have sizes of their own; fitted to the page they vanish
    fitted = {"columns": columns, "axis": _PANEL_AXIS, "spacing": _SPACING, "least": least}
    return spec | {"usermeta": {"panels": fitted}}


def _plain(panel: alt.LayerChart | alt.FacetChart | alt.VConcatChart) -> dict[str, Any]:
    """The spec without the keys that only a whole chart has."""
    spec: dict[str, Any] = panel.to_dict(validate=False)
    return {key: value for key, value in spec.items() if key not in ("$schema", "config")}


def _dates_panel(
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
    dates = alt.X("date:Q", title=None, scale=scale, axis=None if below else axis)
    upper = _figures(panel, rows, coloured, dates, reverse=reverse)
    title = alt.Title(heading, anchor="start", fontSize=12, color="var(--ink)")
    upper = upper.properties(width=_PANEL_WIDTH, height=_DATES_HEIGHT, title=title)
    if not below:
        return upper
    axis_px = _PANEL_AXIS
    lane = alt.Axis(
        labelFontSize=9, ticks=False, domain=False, title=None, minExtent=axis_px, maxExtent=axis_px, labelLimit=axis_px
    )
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
            tooltip=tips("variant", "days", "missing", "reason"),
        )
        .properties(width=_PANEL_WIDTH, height=_LANE * len(lanes))
    )
    return alt.vconcat(upper, lower, spacing=4)


def _figures(
    panel: str, rows: Sequence[Mapping[str, Any]], coloured: Mapping[str, Any], x: alt.X, *, reverse: bool
) -> alt.LayerChart | alt.FacetChart:
    """Bands, lines, points and changes of one panel."""
    here = f"datum.panel == {panel!r}"
    labels = alt.Axis(minExtent=_PANEL_AXIS, maxExtent=_PANEL_AXIS, tickCount=5)
    scale = alt.Scale(domain=_figures_domain(rows), nice=False, zero=False, reverse=reverse)
    y = alt.Y("value:Q", title=None, scale=scale, axis=labels)
    faded = _faded(1, 0.12)
    tip = tips(day="date", variant="version", value="value", text="time", source="source")
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
    words = [*tips("variant", said="change"), *tips("why")]
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
        x=x, y=y, opacity=faded, tooltip=tips("variant", said="unusual")
    )
    return alt.layer(bars, line, rule, points, rings, *signs)


def _faded(chosen: float, others: float) -> alt.OpacityValue:
    """Opacity of the version that the reader chose, and of the others."""
    return alt.OpacityValue(**alt.condition(_CHOSEN, alt.value(chosen), alt.value(others)))


def _figures_domain(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Space for the figures and their bands; a very wide band is cut."""
    if not rows:
        return [0.0, 1.0]
    values = [row["value"] for row in rows]
    least, most = min(values), max(values)
    room = max(most - least, 0.1 * most) * _ROOM
    lows = [row["low"] for row in rows if row["low"] is not None]
    highs = [row["high"] for row in rows if row["high"] is not None]
    return [max(0.0, min([*lows, least]), least - room), min(max([*highs, most]), most + room)]


_PERCENT = "format(datum.value, '~r') + ' %'"
_CURVE_CLIP = 400.0
"""Percent: one very wide interval must not compress the others; its bounds are in the table."""


def efficiency(curves: Sequence[Curve], variants: Sequence[str], title: str) -> dict[str, Any] | None:
    """Efficiency in percent over worker threads: a line per variant in its interval's band, under the ideal line.

    ``curves`` are of one workload, one per variant. None if no variant has two sizes of cluster, or the work has no
    rule of scaling.
    """
    scaled = {curve.variant: speedups(curve.measured, curve.rule) for curve in curves if curve.rule != "none"}
    if all(len(sizes) < 2 for sizes in scaled.values()):
        return None
    rows = [row for label, sizes in scaled.items() for row in _curve_rows(label, sizes)]
    units = sorted({row["units"] for row in rows})
    # Bounds that are missing must not be drawn as zero; the smallest size is 100 % by definition.
    bands = [row for row in rows if row["low"] is not None and row["high"] is not None]
    largest = max([100.0, *(size["high"] or size["efficiency"] for size in rows)])
    across = alt.Scale(type="log", base=2, domain=[units[0], units[-1]], nice=False, padding=12)
    threads = alt.Axis(values=units, format="d", grid=False)
    x = alt.X("units:Q", scale=across, axis=threads, title="worker threads of the cluster")
    up = alt.Scale(domain=[0, 1.05 * min(largest, _CURVE_CLIP)], nice=False)
    axis = alt.Axis(labelExpr=_PERCENT, tickCount=5)
    y = alt.Y("efficiency:Q", scale=up, title=None, axis=axis)
    coloured = by_variant(rows, variants)
    tip = tips("variant", place="nodes x workers", text="efficiency")
    data = alt.Chart(alt.NamedData("sizes"))
    ideal = alt.Chart(alt.NamedData("ideal")).mark_rule(color="var(--ink)", strokeDash=[5, 4])
    band = alt.Chart(alt.NamedData("bands")).mark_area(opacity=0.18, clip=True)
    whole = layered(
        ideal.encode(y=alt.Y("at:Q", scale=up, axis=axis)),
        band.encode(
            x=x,
            y=alt.Y("low:Q", scale=up, title=None),
            y2=alt.Y2("high:Q"),
            color=coloured["color"],
            detail=alt.Detail("layout:N"),
        ),
        data.mark_line(strokeWidth=2, clip=True).encode(
            x=x, y=y, color=coloured["color"], detail=alt.Detail("layout:N")
        ),
        data.mark_point(filled=True, size=70, opacity=1, clip=True).encode(x=x, y=y, tooltip=tip, **coloured),
        width="container",
        height=240,
    )
    return dress(whole, title, {"sizes": rows, "bands": bands, "ideal": [{"at": 100}]})


def _curve_rows(label: str, sizes: Sequence[SpeedupAtSize]) -> list[dict[str, Any]]:
    units = [one.at.units for one in sizes]
    # Where the same number of threads was laid out in several ways, a line joins those of one kind.
    several = len(set(units)) < len(units)
    return [
        {
            "variant": label,
            "units": one.at.units,
            "place": f"{one.at.nodes} x {one.at.workers_per_node}",
            "layout": one.at.workers_per_node if several else 0,
            "efficiency": round(100 * one.efficiency.value, 3),
            "low": 100.0 if one is sizes[0] else _percent(one.efficiency.low),
            "high": 100.0 if one is sizes[0] else _percent(one.efficiency.high),
            "text": percent(one.efficiency),
        }
        for one in sizes
    ]


_SIDES_HEIGHT = 210


def curve_chart(name: str, sides: Mapping[str, Sequence[TimeAtSize]]) -> dict[str, Any]:
    """Seconds, and beside them efficiency where the workload has a rule of scaling, over worker threads.

    ``sides`` are the sizes by the label of their side.
    """
    rows = [row for label, sizes in sides.items() for size in sizes for row in _sides_rows(label, size)]
    units = sorted({row["units"] for row in rows})
    coloured = by_variant(rows, list(sides))
    panels = [
        _sides_panel([row for row in rows if row["what"] == what], what, units, coloured)
        for what in ("seconds", "efficiency, %")
        if any(row["what"] == what for row in rows)
    ]
    whole = alt.concat(*panels, columns=len(panels), spacing=_SPACING).resolve_scale(color="shared", shape="shared")
    spec = dress(
        whole.to_dict(validate=False),
        f"{name}: seconds and efficiency of both sides, with 95 % intervals",
        {"sizes": rows},
    )
    del spec["config"]["autosize"]  # panels have sizes of their own; fitted to the page they vanish
    fitted = {"columns": len(panels), "axis": _PANEL_AXIS, "spacing": _SPACING, "least": _PANEL_WIDTH, "legend": 260}
    return spec | {"usermeta": {"panels": fitted}}


def _sides_rows(label: str, size: TimeAtSize) -> list[dict[str, Any]]:
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


def _sides_panel(
    rows: Sequence[Mapping[str, Any]], what: str, units: Sequence[int], coloured: Mapping[str, Any]
) -> alt.LayerChart | alt.FacetChart:
    most = max(row["value"] for row in rows)
    top = min(max(row["high"] for row in rows), _CLIP * most)
    up = alt.Scale(domain=[0, 1.06 * (max(top, 100.0) if what != "seconds" else top)], nice=False)
    y = alt.Y("value:Q", title=None, scale=up, axis=alt.Axis(tickCount=5, minExtent=_PANEL_AXIS, maxExtent=_PANEL_AXIS))
    across = alt.Scale(type="log", base=2, domain=[units[0], units[-1]], nice=False, padding=14)
    x = alt.X(
        "units:Q", scale=across, title="worker threads", axis=alt.Axis(values=list(units), format="d", grid=False)
    )
    tip = tips(variant="side", units="threads", text=what)
    data = alt.Chart(alt.NamedData("sizes")).transform_filter(f"datum.what == {what!r}")
    band = data.mark_area(opacity=0.18, clip=True).encode(
        x=x, y=alt.Y("low:Q", title=None, scale=up), y2=alt.Y2("high:Q"), color=coloured["color"]
    )
    line = data.mark_line(strokeWidth=2, clip=True).encode(x=x, y=y, color=coloured["color"])
    points = data.mark_point(filled=True, size=60, opacity=1, clip=True).encode(x=x, y=y, tooltip=tip, **coloured)
    heading = alt.Title(what, anchor="start", fontSize=12, color="var(--ink)")
    return alt.layer(band, line, points).properties(width=_PANEL_WIDTH, height=_SIDES_HEIGHT, title=heading)


Format = Literal["svg", "png"]

_STYLE = "report/style.css.j2"
_WIDTH = 760
_SHARPNESS = 2.0
_PADDING = {"left": 36, "right": 12, "top": 12, "bottom": 12}  # room for letters that are wider where it is looked at
_FONT_OF_FILES = "sans-serif"  # nobody knows which fonts stand where the file is looked at


def images(charts: Iterable[Chart], templates: Mapping[str, str], form: Format) -> Iterator[tuple[str, bytes]]:
    """Every chart of a page: a file name that says what it shows, and the file.

    Raises:
        DataError: a chart that the renderer refuses.
    """
    colours = light_colours(templates[_STYLE])
    taken: set[str] = set()
    for chart in charts:
        yield f"{_free(chart.name, taken)}.{form}", _render(chart.name, standalone(chart.spec, colours), form)


def light_colours(style: str) -> dict[str, str]:
    """The style sheet's colours by name, of the light scheme, which stands first."""
    first = style.partition("}")[0]
    return dict(re.findall(r"--([a-z0-9]+):\s*(#[0-9a-f]+);", first))


def standalone(spec: dict[str, Any], colours: dict[str, str]) -> dict[str, Any]:
    """The spec with real colours, a width, a title and paper behind it: there is no page around it."""
    text = re.sub(r"var\(--([a-z0-9]+)\)", lambda found: colours[found[1]], json.dumps(all_visible(spec)))
    plain: dict[str, Any] = json.loads(text)
    plain["config"] |= {"font": _FONT_OF_FILES, "background": colours["paper"]}
    if plain.get("width") == "container":
        plain["width"] = _WIDTH
    title = {"text": plain["description"], "anchor": "start", "fontSize": 14, "offset": 12, "color": colours["ink"]}
    return plain | {"title": title, "padding": _PADDING}


def _render(name: str, spec: dict[str, Any], form: Format) -> bytes:
    # No address may be fetched: the specs hold their data.
    try:
        if form == "svg":
            return str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])).encode()
        return bytes(vl_convert.vegalite_to_png(spec, scale=_SHARPNESS, allowed_base_urls=[]))
    except ValueError as error:
        raise DataError(f"chart '{name}' can't be drawn: {str(error).splitlines()[0]}") from None


def _free(name: str, taken: set[str]) -> str:
    """``samples-message-10-MB``; numbered where two names differ only in what a file name can't hold."""
    plain = re.sub(r"[^A-Za-z0-9._=]+", "-", name).strip("-.")
    found, number = plain, 2
    while found.lower() in taken:
        found, number = f"{plain}-{number}", number + 1
    taken.add(found.lower())
    return found
