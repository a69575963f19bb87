"""Scaling: speed-up and efficiency of every workload and variant."""

import dataclasses
import functools
import json
from collections.abc import Sequence
from typing import Any

from gpubench.model.cell_names import cell_names
from gpubench.model.quantities import digits
from gpubench.report import labels
from gpubench.report.charts.curves import efficiency
from gpubench.report.sections import (
    Chart,
    ColumnStyle,
    Heading,
    Medium,
    RichText,
    Section,
    SectionPart,
    TextSpan,
    TextTable,
)
from gpubench.results.curves import Curve
from gpubench.stats.data import Key
from gpubench.stats.ratio import Interval
from gpubench.stats.scaling import ScalingPoint, TimeAtSize, times_at_sizes

SCHEMA = "gpubench/scaling/1"
_INTRODUCTION = (
    "Efficiency of every size against the smallest one, by worker threads of the whole cluster; the dashed line is "
    "ideal. Bands are 95 % intervals over runs, separately for each size. An error of the smallest size shifts all "
    "sizes together. Sizes were measured in different allocations."
)
RULES = {
    "weak": "weak: the work grows with the workers",
    "strong": "strong: the same work at every size",
    "none": "no rule of scaling: the work depends on the workers in another way",
}


def scaling_section(
    name: str,
    curves: Sequence[Curve],
    remarks: Sequence[str] = (),
    anchors: Sequence[str] = (),
) -> Section:
    """A table per workload and variant; numbers are seconds.

    ``anchors`` are parts of the page that a size may lead to, for its runs and raw files.
    """
    by_workload: dict[Key, list[Curve]] = {}
    for curve in curves:
        by_workload.setdefault(curve.key, []).append(curve)
    names = cell_names([dict(key) for key in by_workload])
    parts, plain = [], []
    for number, (key, workload) in enumerate(zip(by_workload, names, strict=True)):
        several, anchor = by_workload[key], f"scaling-{dict(key).get('params_id', number)}"
        drawn = [(curve, times_at_sizes(curve.measured, curve.rule)) for curve in several]
        bases = _other_bases(drawn)
        inner = [_curve_part(workload, curve, sizes, anchors, bases.get(curve.variant)) for curve, sizes in drawn]
        parts.append(_workload_part(anchor, several, workload, inner, [*bases.values()]))
        plain += [_plain(curve, sizes) for curve, sizes in drawn]
    parts.append(SectionPart(lines=remarks, medium=Medium.PRINTED))
    return Section(
        parts,
        {"schema": SCHEMA, "campaign": name, "curves": plain},
        title="Scaling",
        anchor="scaling",
        text=[TextSpan(_INTRODUCTION, "quiet")],
        brief="time and efficiency over the size of the cluster",
        open=True,
    )


def _other_bases(drawn: Sequence[tuple[Curve, Sequence[TimeAtSize]]]) -> dict[str, str]:
    """By variant: that its ratios are against another size than those of the others, whose smallest it lacks."""
    least = min((sizes[0].at.units for _, sizes in drawn if sizes), default=0)
    return {
        curve.variant: f"{curve.variant} has no run at the smallest size: its figures are against "
        f"{_place_text(curve, sizes[0].at)}, its own smallest"
        for curve, sizes in drawn
        if len(sizes) > 1 and sizes[0].speedup and sizes[0].at.units > least
    }


def _workload_part(
    anchor: str, several: Sequence[Curve], name: str, inner: Sequence[SectionPart], bases: Sequence[str]
) -> SectionPart:
    """One workload; on the page with a chart, if it has a rule of scaling."""
    first, variants = several[0], [curve.variant for curve in several]
    shown = f"{name}: efficiency over worker threads, with 95 % intervals"
    draw = functools.partial(efficiency, several, variants, shown)
    drawn = is_scaled(several) and first.rule != "none"
    silent = "" if drawn else "; no chart: its time says nothing about scaling"
    return SectionPart(
        anchor=anchor,
        heading=name,
        text=[TextSpan(f"{RULES[first.rule]}{silent}", "quiet"), *(TextSpan(base, "note") for base in bases)],
        charts=[Chart(anchor, f"efficiency {name}", draw)] if drawn else [],
        parts=[SectionPart(fold="Numbers at every size, and where they come from", parts=inner)],
    )


def is_scaled(several: Sequence[Curve]) -> bool:
    """Whether some variant ran at two sizes."""
    return any(sum(bool(point.logs) for point in curve.measured) > 1 for curve in several)


def _plain(curve: Curve, sizes: Sequence[TimeAtSize]) -> dict[str, Any]:
    key = {name: value for name, value in curve.key if name != "params_id"}
    figures = [{**_place(curve, size.at), "runs": len(size.at.logs), **_figures(size)} for size in sizes]
    return {**key, "params": json.loads(key["params"]), "variant": curve.variant, "rule": curve.rule, "sizes": figures}


def _place(curve: Curve, at: ScalingPoint) -> dict[str, int]:
    if not curve.by_node:
        return {"workers": at.workers_per_node, "threads_per_worker": at.threads_per_worker}
    return {name: getattr(at, name) for name in ("nodes", "workers_per_node", "threads_per_worker")}


def _curve_part(
    name: str, curve: Curve, sizes: Sequence[TimeAtSize], anchors: Sequence[str], base: str | None
) -> SectionPart:
    title = f"{name}, {curve.variant} ({RULES[curve.rule]})"
    if not sizes:
        return SectionPart(title, ["no run of it is ok"])
    rows: list[list[RichText]] = [
        [
            _place_text(curve, size.at),
            TextSpan(labels.seconds(size.seconds.value), link=_link(curve, size.at, anchors)),
            *(_ratio_texts(size) if len(sizes) > 1 else ("-", "-")),
            str(len(size.at.logs)),
        ]
        for size in sizes
    ]
    columns = [
        Heading("nodes x workers" if curve.by_node else "workers"),
        *(Heading(name, ColumnStyle.NUMBER) for name in ("seconds", "speed-up", "efficiency", "runs")),
    ]
    caption = f"Seconds, speed-up and efficiency of {name}, {curve.variant}, at every size, with 95 % intervals"
    return SectionPart(title, [base] if base else [], TextTable(columns, rows, caption))


def _place_text(curve: Curve, at: ScalingPoint) -> str:
    threads = f" x {at.threads_per_worker} threads" if at.threads_per_worker > 1 else ""
    return f"{at.nodes} x {at.workers_per_node}{threads}" if curve.by_node else f"{at.workers_per_node}{threads}"


def _figures(size: TimeAtSize) -> dict[str, Any]:
    """``seconds``, ``speedup`` and ``efficiency``, each with its interval."""
    return {name: figure for name, figure in dataclasses.asdict(size).items() if name != "at"}


def _ratio_texts(size: TimeAtSize) -> tuple[str, str]:
    """Speed-up and efficiency, each with its interval; ``-`` where the work follows no rule of scaling."""
    if size.speedup is None or size.efficiency is None:
        return "-", "-"
    efficiency = f"{digits(100 * size.efficiency.value, 3)} %{_bounds(size.efficiency.times(100))}"
    return f"{digits(size.speedup.value, 3)}{_bounds(size.speedup)}", efficiency


def _bounds(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return ""
    return f" [{digits(interval.low, 3)}, {digits(interval.high, 3)}]"


def _link(curve: Curve, at: ScalingPoint, anchors: Sequence[str]) -> str:
    anchor = f"samples-{dict(curve.key).get('params_id')}-{at.nodes}-{at.workers_per_node}"
    return f"#{anchor}" if anchor in anchors else ""
