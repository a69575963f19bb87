"""Scaling of a campaign or an import: speed-up and efficiency."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.importers.pairing import ImportedCurve
from gpubench.merge.curves import ScalingCurve
from gpubench.model.plan import Place
from gpubench.report import labels
from gpubench.report.sections import (
    Chart,
    ColumnStyle,
    Heading,
    Medium,
    RichText,
    Section,
    SectionPart,
    Spec,
    TextSpan,
    TextTable,
)
from gpubench.stats.scaling import (
    Interval,
    Rule,
    ScalingPoint,
    SpeedupAtSize,
    TimeAtSize,
    speedups,
    times_at_sizes,
)

SCHEMA = "gpubench/scaling/1"
_INTRODUCTION = (
    "Efficiency of every size against the smallest one, by worker threads of the whole cluster; the dashed line is "
    "ideal. Bands are 95 % intervals over runs, separately for each size. An error of the smallest size shifts all "
    "sizes together. Sizes were measured in different allocations."
)
_PLACE = ("nodes", "workers_per_node", "threads_per_worker")
RULES = {
    "weak": "weak: the work grows with the workers",
    "strong": "strong: the same work at every size",
    "none": "no rule of scaling: the work depends on the workers in another way",
}


def scaling_section(
    campaign: str,
    curves: Sequence[ScalingCurve],
    remarks: Sequence[str] = (),
    anchors: Sequence[str] = (),
) -> Section:
    """A table per workload and variant; numbers are seconds.

    ``anchors`` are parts of the page that a size may lead to, for its runs and raw files.
    """
    by_workload: dict[str, list[ScalingCurve]] = {}
    for curve in curves:
        by_workload.setdefault(curve.workload.params_id, []).append(curve)
    names = labels.cell_names([labels.workload_key(several[0].workload) for several in by_workload.values()])
    parts, plain = [], []
    for several, name in zip(by_workload.values(), names, strict=True):
        inner = []
        for curve in several:
            sizes = sizes_of(curve.measured, curve.rule)
            links = [_link(curve.workload.params_id, (one.at.nodes, one.at.workers_per_node), anchors) for one in sizes]
            inner.append(
                _curve_part(
                    name, curve, sizes, "nodes x workers", places=[_place_words(one.at) for one in sizes], links=links
                )
            )
            places = [{name: getattr(one.at, name) for name in _PLACE} for one in sizes]
            key = {"workload": curve.workload.name, "backend": curve.workload.backend, "params": curve.workload.params}
            plain.append(_plain(key, curve, sizes, places))
        parts.append(_workload_part(several, name, inner))
    parts.append(SectionPart(lines=remarks, medium=Medium.PRINTED))
    return Section(
        parts,
        _document(campaign, plain),
        title="Scaling",
        anchor="scaling",
        text=[TextSpan(_INTRODUCTION, "quiet")],
        brief="time and efficiency over the size of the cluster",
        open=True,
    )


def _workload_part(several: Sequence[ScalingCurve], name: str, inner: Sequence[SectionPart]) -> SectionPart:
    """One workload; on the page with a chart, if it has a rule of scaling."""
    first, variants = several[0], [one.variant for one in several]

    def draw() -> Spec:
        from gpubench.report import charts

        found = charts.efficiency(several, variants, f"{name}: efficiency over worker threads, with 95 % intervals")
        assert found is not None
        return found

    anchor = f"scaling-{first.workload.params_id}"
    drawn = is_scaled(several) and first.rule != "none"
    silent = "" if drawn else "; no chart: its time says nothing about scaling"
    return SectionPart(
        anchor=anchor,
        heading=name,
        text=[TextSpan(f"{RULES[first.rule]}{silent}", "quiet")],
        charts=[Chart(anchor, f"efficiency {name}", draw)] if drawn else [],
        parts=[SectionPart(fold="Numbers at every size, and where they come from", parts=inner)],
    )


def is_scaled(several: Sequence[ScalingCurve]) -> bool:
    """Whether some variant ran at two sizes."""
    return any(sum(bool(one.logs) for one in curve.measured) > 1 for curve in several)


def imported_scaling_section(name: str, curves: Sequence[ImportedCurve]) -> Section:
    """A table per workload and version; ``workers`` are all of the cluster."""
    parts, plain = [], []
    for curve, title in zip(curves, labels.cell_names([dict(one.key) for one in curves]), strict=True):
        sizes = sizes_of(curve.measured, curve.rule)
        parts.append(_curve_part(title, curve, sizes, "workers", places=[str(one.at.units) for one in sizes]))
        plain.append(_plain(dict(curve.key), curve, sizes, [{"workers": one.at.units} for one in sizes]))
    note = "sizes are compared over all their dates; changes between the dates widen the intervals"
    return Section(parts, _document(name, plain), [note])


def _document(name: str, curves: list[dict[str, Any]]) -> dict[str, Any]:
    return {"schema": SCHEMA, "campaign": name, "curves": curves}


def _plain(
    key: Mapping[str, Any],
    curve: ScalingCurve | ImportedCurve,
    sizes: Sequence[TimeAtSize],
    places: Sequence[Mapping[str, int]],
) -> dict[str, Any]:
    figures = [{**place, **plain_figures(one)} for place, one in zip(places, sizes, strict=True)]
    return {**key, "variant": curve.variant, "rule": curve.rule, "sizes": figures}


def _curve_part(
    name: str,
    curve: ScalingCurve | ImportedCurve,
    sizes: Sequence[TimeAtSize],
    heading: str,
    *,
    places: Sequence[str],
    links: Sequence[str] = (),
) -> SectionPart:
    title = f"{name}, {curve.variant} ({RULES[curve.rule]})"
    if not sizes:
        return SectionPart(title, ["no run of it is ok"])
    rows: list[list[RichText]] = [
        [place, TextSpan(labels.seconds(one.seconds.value), link=link), *ratio_words(one), str(len(one.at.logs))]
        for place, one, link in zip(places, sizes, links or [""] * len(sizes), strict=True)
    ]
    columns = [
        Heading(heading),
        *(Heading(name, ColumnStyle.NUMBER) for name in ("seconds", "speed-up", "efficiency", "runs")),
    ]
    caption = f"Seconds, speed-up and efficiency of {name}, {curve.variant}, at every size, with 95 % intervals"
    return SectionPart(title, table=TextTable(columns, rows, caption))


def _place_words(at: ScalingPoint) -> str:
    threads = f" x {at.threads_per_worker} threads" if at.threads_per_worker > 1 else ""
    return f"{at.nodes} x {at.workers_per_node}{threads}"


def sizes_of(measured: Sequence[ScalingPoint], rule: Rule) -> Sequence[TimeAtSize]:
    """Every size with runs; ``SpeedupAtSize`` where the workload's rule gives a speed-up and an efficiency."""
    return times_at_sizes(measured) if rule == "none" else speedups(measured, rule)


def plain_figures(one: TimeAtSize) -> dict[str, Any]:
    """``runs``, ``seconds``, ``speedup`` and ``efficiency``; the last two are None where no rule gives them."""
    ratios = ("speedup", "efficiency")
    return {
        "runs": len(one.at.logs),
        "seconds": dataclasses.asdict(one.seconds),
        **{name: dataclasses.asdict(getattr(one, name)) if isinstance(one, SpeedupAtSize) else None for name in ratios},
    }


def ratio_words(one: TimeAtSize) -> tuple[str, str]:
    """Speed-up and efficiency, each with its interval; ``-`` where the work follows no rule of scaling."""
    if not isinstance(one, SpeedupAtSize):
        return "-", "-"
    return f"{one.speedup.value:.3g}{_bounds(one.speedup)}", percent(one.efficiency)


def percent(interval: Interval) -> str:
    """``82.1 % [80.3, 84]``; the value alone without an interval."""
    return f"{100 * interval.value:.3g} %{_bounds(interval.times(100))}"


def _bounds(interval: Interval) -> str:
    return "" if interval.low is None else f" [{interval.low:.3g}, {interval.high:.3g}]"


def _link(params_id: str, place: Place, anchors: Sequence[str]) -> str:
    anchor = f"samples-{params_id}-{place[0]}-{place[1]}"
    return f"#{anchor}" if anchor in anchors else ""
