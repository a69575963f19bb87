"""The chart of all effects with their intervals (a forest plot)."""

from collections.abc import Sequence
from typing import Any

from gpubench.report import labels
from gpubench.report.charts.style import WIDTH, category, data, layer, with_style
from gpubench.report.sections import Spec
from gpubench.stats.margin import Margin
from gpubench.stats.verdict import Verdict

_SHAPES = ("triangle-up", "triangle-down", "circle", "diamond", "cross")
"""Of the verdicts, as their marks in ``labels.MARKS``."""
_WIDTH, _ROW = WIDTH - 220, 25
_NARROW_WIDTH, _NARROW_ROW = 320, 44
"""On the screen of a phone, where names stand above their rows."""
_BEYOND = 4.0
"""Times the largest effect: the part of an interval that lies farther away is cut, and is in the table."""
_SIGNED = "(datum.value > 0 ? '+' : '') + format(datum.value, '~r')"


def forest(verdicts: Sequence[Verdict], names: Sequence[str], margin: Margin, *, narrow: bool = False) -> Spec:
    """Effects with their intervals over the band of the margin, in percent, slower to the right; a facet per pair.

    The axis is almost even within the margin and logarithmic beyond, so that the margin stays visible beside a workload
    that is ten times noisier. What lies beyond the picture has an arrow at its edge. ``narrow``: for a phone.
    """
    faster, band = 100 * margin.faster, 100 * margin
    least, most = bounds = [round(100 * end, 3) for end in _range(verdicts, margin)]
    rows = _rows(verdicts, names)
    pairs = list(dict.fromkeys(row["pair"] for row in rows))
    scale = {"type": "symlog", "constant": band, "domain": bounds, "clamp": True, "nice": False, "padding": 8}
    axis = {"values": _ticks(bounds, faster, band), "labelExpr": _SIGNED, "labelOverlap": "greedy", "grid": True}
    title = "change of the time in %, slower →"

    def x(**channel: Any) -> Spec:
        return {"type": "quantitative", "scale": scale, "axis": axis, "title": title, **channel}

    beside = {"labelLimit": 200, "labelPadding": 8, "ticks": False, "domain": False}
    row = {
        "y": category("name", axis=None if narrow else beside),
        "color": category("verdict", legend=None, scale=_scale([f"var(--{word})" for word in labels.MARKS])),
    }
    interval = {**row, "x": x(field="low"), "x2": {"field": "high"}}
    point = {**row, "x": x(field="effect"), "shape": category("verdict", legend=None, scale=_scale(_SHAPES))}
    layers = [
        layer("rect", {"x": x(datum=faster), "x2": {"datum": band}}, where="datum.first", color="var(--band)"),
        layer("rule", {"x": x(datum=0)}, where="datum.first", color="var(--ink)"),
        layer("rule", interval, where="isValid(datum.low)", strokeWidth=2.5),
        layer("point", point, where=f"inrange(datum.effect, {bounds})", size=90),
    ]
    if narrow:
        above = {"x": {"value": 0}, "y": row["y"], "text": {"field": "name"}}
        layers.append(layer("text", above, align="left", dy=-14, fontSize=12, color="var(--ink)"))
    left = (least, "left", f"datum.effect < {least}", f"datum.low < {least}")
    right = (most, "right", f"datum.effect > {most}", f"datum.high > {most}")
    for edge, side, beyond, cut in (left, right):
        end = {**row, "x": x(datum=edge)}
        where = f"{beyond} || isValid(datum.low) && {cut}"
        layers.append(layer("point", end, where=where, size=60, shape=f"triangle-{side}"))
        text = {**end, "text": {"field": "text"}}
        inward = 12 if side == "left" else -12
        layers.append(layer("text", text, where=beyond, align=side, dx=inward, fontSize=11))
    width, step = (_NARROW_WIDTH, _NARROW_ROW) if narrow else (_WIDTH, _ROW)
    inner = {"width": width, "height": {"step": step}, "layer": layers}
    facet = {"row": category("pair", sort=pairs)}
    faceted = {**data(rows), "facet": facet, "spec": inner, "spacing": 8, "resolve": {"scale": {"y": "independent"}}}
    return with_style(faceted, "Effects with their intervals")


def _scale(values: Sequence[str]) -> Spec:
    return {"domain": list(labels.MARKS), "range": list(values)}


def _rows(verdicts: Sequence[Verdict], names: Sequence[str]) -> list[dict[str, Any]]:
    """A row per verdict that has an effect, in percent; ``first`` of its pair."""
    rows: list[dict[str, Any]] = []
    for verdict, name in zip(verdicts, names, strict=True):
        if verdict.effect is not None:
            low, high = (None if end is None else round(100 * end, 3) for end in verdict.shown)
            row: dict[str, Any] = {"name": name, "pair": labels.pair(verdict), "verdict": verdict.verdict}
            row |= {"low": low, "high": high}
            is_first = row["pair"] not in {other["pair"] for other in rows}
            row |= {"effect": round(100 * verdict.effect, 3), "first": is_first}
            rows.append(row | {"text": f"{labels.effect(verdict)} {labels.interval(verdict)}".strip()})
    return rows


def _ticks(bounds: Sequence[float], faster: float, slower: float) -> list[float]:
    """Zero, both ends of the margin, and round numbers beyond it, in percent."""
    beyond = [step * 10**power for power in range(4) for step in (1, 2, 5)]
    sizes = [size for size in beyond if size >= 2 * slower]
    ticks = [0, slower, *sizes, float(f"{faster:.2g}"), *(-size for size in [*sizes, 90])]
    return [tick for tick in ticks if bounds[0] <= tick <= bounds[1]]


def _range(verdicts: Sequence[Verdict], margin: float) -> tuple[float, float]:
    """Space for effects, their intervals and the margin, as ratios minus one; one very wide interval hides no others.

    An effect without an interval doesn't extend the space if others have intervals.
    """
    shown = [(verdict.effect, *verdict.shown) for verdict in verdicts if verdict.effect is not None]
    rows = [row for row in shown if row[1] is not None] or shown
    bound = _BEYOND * max([margin, *(abs(row[0]) for row in rows)])
    ends = [end for row in rows for end in row if end is not None]
    return max(min([-1.5 * margin, *ends]), -bound), min(max([1.5 * margin, *ends]), bound)
