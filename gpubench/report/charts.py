"""Vega-Lite specs of the page's charts. Colours are CSS variables, so one chart serves light, dark and print."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from gpubench.merge.family import Cell
from gpubench.report import condense, labels
from gpubench.report.chart_parts import by_variant, finish
from gpubench.stats.modes import anchor
from gpubench.stats.verdict import Verdict

VERDICT_WORDS = tuple(labels.MARKS)
_VERDICT_SHAPES = ("triangle-up", "triangle-down", "circle", "diamond", "cross")

_BINS = 40
_ROW = 25
_PARTED = " · "
_CLIP = 4.0


def forest(verdicts: Sequence[Verdict], names: Sequence[str], margin: float) -> dict[str, Any]:
    """Effects with their intervals over the band of ±margin, in percent, slower to the right.

    Rows stand together by pair of variants, below a heading where there are several. The axis is almost even within
    the margin and logarithmic beyond: so a workload that is ten times noisier leaves the margin to be seen.
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
    tip = [alt.Tooltip("row:N", title="comparison"), alt.Tooltip("text:N"), alt.Tooltip("verdict:N")]
    data = alt.Chart(alt.NamedData("rows"))
    band = alt.Chart(alt.NamedData("band")).mark_rect(color="var(--band)", clip=True)
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(color="var(--ink)", strokeWidth=1)
    ticks = alt.Axis(values=_ticks(bounds, 100 * margin), labelExpr=_SIGNED, labelOverlap="greedy")
    x = alt.X("low:Q", scale=domain, title="change of the time in %, slower →", axis=ticks)
    layers = alt.layer(
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
    )
    values = {"rows": rows, "band": [{"low": -100 * margin, "high": 100 * margin}], "zero": [{"at": 0}]}
    whole = layers.properties(width="container", height=_ROW * len(order))
    return finish(whole, "Effects with their intervals", values)


def samples(
    cells: Sequence[Cell], variants: Sequence[str], title: str, *, means_only: bool, condensed: bool = False
) -> dict[str, Any]:
    """Every timed sample of one workload in order of time: run after run, block after block; a bar marks a run's mean.

    Args:
        cells: those of one workload and node count that have samples.
        variants: labels in the plan's order, which decides colour and shape; the first is the baseline.
        title: what the chart shows, for those who can't see it.
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
    tip = [
        alt.Tooltip("variant:N"),
        alt.Tooltip("block:O"),
        alt.Tooltip("label:N", title="mean"),
        alt.Tooltip("status:N"),
    ]
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
    layers = alt.layer(between, points, means).properties(width="container", height=220)
    return finish(layers, title, values)


def histogram(cells: Sequence[Cell], variants: Sequence[str], title: str) -> dict[str, Any]:
    """How often each duration came, over all runs that count: a step line for each variant, bins of equal ratios.

    Durations are ratios to their run's second fastest, as the test for modes takes them: runs that differ from each
    other would hide what happens within them.

    Args:
        cells: those of one workload and node count that have samples.
        variants: labels in the plan's order, which decides the colour.
        title: what the chart shows, for those who can't see it.
    """
    logs = {
        label: [
            math.log(value / anchor(cell.wall_s))
            for cell in cells
            if cell.outcome.run.variant == label
            for value in cell.wall_s
        ]
        for label in variants
    }
    every = [value for values in logs.values() for value in values]
    low, width = min(every), max(max(every) - min(every), 1e-9) / _BINS
    rows: list[dict[str, Any]] = []
    for label, values in logs.items():
        counts = Counter(min(int((value - low) / width), _BINS - 1) for value in values)
        # A bin more on each side: a step line ends where it begins, on the ground.
        edges = [labels.short(math.exp(low + at * width)) for at in range(-1, _BINS + 1)] if values else []
        rows += [{"variant": label, "s": edge, "n": counts[at - 1]} for at, edge in enumerate(edges)]
    data = alt.Chart(alt.NamedData("bins"))
    across = alt.X("s:Q", scale=alt.Scale(type="log", nice=False), title=None, axis=alt.Axis(format="~r"))
    lines = data.mark_line(interpolate="step-after", strokeWidth=2).encode(
        x=across,
        y=alt.Y("n:Q", title="repetitions", axis=alt.Axis(tickCount=4, tickMinStep=1)),
        color=by_variant(rows, variants)["color"],
    )
    return finish(alt.layer(lines).properties(width="container", height=140), title, {"bins": rows})


_COUNTS = "datum.status == 'ok'"
_SECONDS = "replace(format(datum.value, '~s'), /([^0-9.])?$/, ' $1') + 's'"
_SIGNED = "(datum.value > 0 ? '+' : '') + format(datum.value, '~r')"


def _run_row(number: int, cell: Cell, *, means_only: bool) -> dict[str, Any]:
    mean = statistics.fmean(cell.wall_s)
    shown = [mean] if means_only else cell.wall_s
    return {
        "x": number,
        "x2": number + 1,
        "n": len(shown),
        "variant": cell.outcome.run.variant,
        "block": cell.outcome.block.block,
        "mean": labels.short(mean),
        "status": cell.status,
        "label": labels.seconds(mean),
        "s": [labels.short(value) for value in shown],
    }


def _stretch_rows(ordered: Sequence[Cell], variants: Sequence[str]) -> list[dict[str, Any]]:
    found = [
        (name, variant, mean)
        for name, cells in condense.stretches(ordered, variants)
        for variant in variants
        if (mean := condense.mean(cells[variant])) is not None
    ]
    return [
        {
            "x": number,
            "x2": number + 1,
            "n": 1,
            "variant": variant,
            "block": name,
            "mean": labels.short(mean),
            "status": "ok",
            "label": labels.seconds(mean),
            "s": [labels.short(mean)],
        }
        for number, (name, variant, mean) in enumerate(found)
    ]


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
    """Space for effects and band. One hopeless interval mustn't hide the others: it is cut, and stands in the table.

    An effect that nothing tells the error of makes no room for itself where others have intervals.
    """
    rows = [row for row in rows if row["low"] is not None] or rows
    effects = [abs(row["effect"]) for row in rows]
    bound = _CLIP * max([margin, *effects])
    lows = [row["effect"] if row["low"] is None else row["low"] for row in rows]
    highs = [row["effect"] if row["high"] is None else row["high"] for row in rows]
    return [max(min([*lows, -1.5 * margin]), -bound), min(max([*highs, 1.5 * margin]), bound)]


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else round(100 * ratio, 3)
