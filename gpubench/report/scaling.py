"""Scaling of a campaign or an import: speed-up, efficiency, the law behind them, and the scheduler's share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.importers.sizes import ImportedCurve
from gpubench.merge.curves import ScalingCurve, SchedulerShare
from gpubench.report import labels
from gpubench.report.sections import Section, SectionPart, TextTable
from gpubench.spec.plain import canonical
from gpubench.stats.scaling import Interval, Rule, ScalingPoint, SpeedupAtSize, TimeAtSize, speedups, times_at_sizes
from gpubench.stats.usl import LEAST_SIZES, REACH, Usl, fit_usl

SCHEMA = "gpubench/scaling/1"
_PLACE = ("nodes", "workers_per_node", "threads_per_worker")
RULES = {
    "weak": "weak: the work grows with the workers",
    "strong": "strong: the same work at every size",
    "none": "no rule of scaling: the work follows the workers in a way of its own",
}


def scaling_section(
    campaign: str, curves: Sequence[ScalingCurve], shares: Sequence[SchedulerShare], remarks: Sequence[str] = ()
) -> Section:
    """A table per workload and variant, with the law behind it, and the scheduler's share; numbers are seconds."""
    parts, plain = [], []
    for curve, name in zip(curves, labels.cell_names([curve_key(one) for one in curves]), strict=True):
        sizes = sizes_of(curve.measured, curve.rule)
        law = None if curve.rule == "none" else fit_usl(curve.measured, curve.rule)
        parts.append(_curve_part(name, curve, sizes, "nodes x workers", [_place_words(one.at) for one in sizes]))
        if sizes and curve.rule != "none":
            parts.append(SectionPart(lines=[_law_words(law)], depth=1))
        places = [{name: getattr(one.at, name) for name in _PLACE} for one in sizes]
        key = {"workload": curve.workload.name, "backend": curve.workload.backend, "params": curve.workload.params}
        known = None if law is None else {**dataclasses.asdict(law), "peak": law.peak}
        plain.append({**_plain(key, curve, sizes, places), "law": known})
    said = [
        f"the scheduler's share of {one.workload}, {one.variant}, {one.place[0]} x {one.place[1]}: "
        f"{percent(one.share)} ({one.runs} runs)"
        for one in shares
    ]
    parts.append(SectionPart(lines=[*said, *remarks]))
    return Section(parts, _document(campaign, plain, [dataclasses.asdict(one) for one in shares]))


def imported_scaling_section(name: str, curves: Sequence[ImportedCurve]) -> Section:
    """A table per workload and version; ``workers`` are all of the cluster."""
    parts, plain = [], []
    for curve, title in zip(curves, labels.cell_names([dict(one.key) for one in curves]), strict=True):
        sizes = sizes_of(curve.measured, curve.rule)
        parts.append(_curve_part(title, curve, sizes, "workers", [str(one.at.units) for one in sizes]))
        plain.append(_plain(dict(curve.key), curve, sizes, [{"workers": one.at.units} for one in sizes]))
    note = "sizes are compared over all their dates; what changed between the dates is in the intervals"
    return Section(parts, _document(name, plain, []), [note])


def _document(name: str, curves: list[dict[str, Any]], shares: list[Any]) -> dict[str, Any]:
    return {"schema": SCHEMA, "campaign": name, "curves": curves, "scheduler_shares": shares}


def _plain(
    key: Mapping[str, Any],
    curve: ScalingCurve | ImportedCurve,
    sizes: Sequence[TimeAtSize],
    places: Sequence[Mapping[str, int]],
) -> dict[str, Any]:
    figures = [{**place, **plain_figures(one)} for place, one in zip(places, sizes, strict=True)]
    return {**key, "variant": curve.variant, "rule": curve.rule, "sizes": figures}


def _curve_part(
    name: str, curve: ScalingCurve | ImportedCurve, sizes: Sequence[TimeAtSize], heading: str, places: Sequence[str]
) -> SectionPart:
    title = f"{name}, {curve.variant} ({RULES[curve.rule]})"
    if not sizes:
        return SectionPart(title, ["no run of it is ok"])
    rows = [
        (place, labels.seconds(one.seconds.value), *ratio_words(one), str(len(one.at.logs)))
        for place, one in zip(places, sizes, strict=True)
    ]
    return SectionPart(title, table=TextTable((heading, "seconds", "speed-up", "efficiency", "runs"), rows))


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


def curve_key(curve: ScalingCurve) -> dict[str, object]:
    """What ``labels.cell_names`` names a curve's workload by."""
    workload = curve.workload
    return {"workload": workload.name, "backend": workload.backend, "params": canonical(workload.params).decode()}


def ratio_words(one: TimeAtSize) -> tuple[str, str]:
    """Speed-up and efficiency, each with its interval; ``-`` where the work follows no rule of scaling."""
    if not isinstance(one, SpeedupAtSize):
        return "-", "-"
    return f"{one.speedup.value:.3g}{_bounds(one.speedup, '.3g')}", percent(one.efficiency)


def law_words(curve: ScalingCurve) -> str:
    """What the scalability law says of it, or why there is none."""
    return _law_words(None if curve.rule == "none" else fit_usl(curve.measured, curve.rule))


def _law_words(law: Usl | None) -> str:
    if law is None:
        return f"no law fitted: that takes {LEAST_SIZES} sizes, and runs to spare"
    return f"contention {percent(law.contention)}, coherency {percent(law.coherency)}; {_peak(law)}"


def _peak(law: Usl) -> str:
    reach = int(REACH * law.largest)
    if law.peak is None:
        return f"more threads still help up to {reach}, beyond which nothing is said"
    if law.speedup(2) < 1:
        return "one thread does the most"
    return f"beyond {max(2, round(law.peak))} threads more of them do less"


def percent(interval: Interval) -> str:
    """``82.1 % [80.3, 84]``; the value alone without an interval, ``...`` for a bound that nobody knows."""
    return f"{100 * interval.value:.3g} %{_bounds(interval.times(100), '.3g')}"


def _bounds(interval: Interval, form: str) -> str:
    if interval.low is None:
        return ""
    high = "..." if interval.high is None else format(interval.high, form)
    return f" [{interval.low:{form}}, {high}]"
