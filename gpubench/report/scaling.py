"""Scaling in words and as JSON: speed-up, efficiency, the law behind them, and the scheduler's share."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.merge.curves import ScalingCurve, SchedulerShare
from gpubench.report import labels
from gpubench.spec.plain import canonical
from gpubench.stats.scaling import Interval, Rule, ScalingPoint, SpeedupAtSize, TimeAtSize, speedups, times_at_sizes
from gpubench.stats.usl import LEAST_SIZES, REACH, Usl, fit_usl

SCHEMA = "gpubench/scaling/1"
RULES = {
    "weak": "weak: the work grows with the workers",
    "strong": "strong: the same work at every size",
    "none": "no rule of scaling: the work follows the workers in a way of its own",
}


def scaling_lines(curves: Sequence[ScalingCurve], shares: Sequence[SchedulerShare]) -> Iterator[str]:
    """For people: a table per workload and variant, aligned with blanks."""
    names = labels.cell_names([curve_key(curve) for curve in curves])
    for curve, name in zip(curves, names, strict=True):
        yield f"{name}, {curve.variant} ({RULES[curve.rule]})"
        sizes = sizes_of(curve.measured, curve.rule)
        if not sizes:
            yield "  no run of it is ok"
            continue
        rows = [
            ("nodes x workers", "seconds", "speed-up", "efficiency", "runs"),
            *(_row(one) for one in sizes),
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            yield "  " + "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        if curve.rule != "none":
            yield f"  {law_words(curve)}"
    for one in shares:
        yield (
            f"the scheduler's share of {one.workload}, {one.variant}, {one.place[0]} x {one.place[1]}: "
            f"{percent(one.share)} ({one.runs} runs)"
        )


def scaling_json(campaign: str, curves: Sequence[ScalingCurve], shares: Sequence[SchedulerShare]) -> dict[str, Any]:
    """The same, complete: seconds, ratios and shares as numbers."""
    return {
        "schema": SCHEMA,
        "campaign": campaign,
        "curves": [_plain(curve) for curve in curves],
        "scheduler_shares": [dataclasses.asdict(one) for one in shares],
    }


def _plain(curve: ScalingCurve) -> dict[str, Any]:
    law = None if curve.rule == "none" else fit_usl(curve.measured, curve.rule)
    return {
        "workload": curve.workload.name,
        "backend": curve.workload.backend,
        "params": curve.workload.params,
        "variant": curve.variant,
        "rule": curve.rule,
        "sizes": [_plain_size(one) for one in sizes_of(curve.measured, curve.rule)],
        "law": None if law is None else {**dataclasses.asdict(law), "peak": law.peak},
    }


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


def _plain_size(one: TimeAtSize) -> dict[str, Any]:
    return {
        "nodes": one.at.nodes,
        "workers_per_node": one.at.workers_per_node,
        "threads_per_worker": one.at.threads_per_worker,
        **plain_figures(one),
    }


def curve_key(curve: ScalingCurve) -> dict[str, object]:
    """What ``labels.cell_names`` names a curve's workload by."""
    workload = curve.workload
    return {"workload": workload.name, "backend": workload.backend, "params": canonical(workload.params).decode()}


def _row(one: TimeAtSize) -> tuple[str, ...]:
    at = one.at
    threads = f" x {at.threads_per_worker} threads" if at.threads_per_worker > 1 else ""
    return (
        f"{at.nodes} x {at.workers_per_node}{threads}",
        f"{labels.seconds(one.seconds.value)}",
        *ratio_words(one),
        f"{len(at.logs)}",
    )


def ratio_words(one: TimeAtSize) -> tuple[str, str]:
    """Speed-up and efficiency, each with its interval; ``-`` where the work follows no rule of scaling."""
    if not isinstance(one, SpeedupAtSize):
        return "-", "-"
    return f"{one.speedup.value:.3g}{_bounds(one.speedup, '.3g')}", percent(one.efficiency)


def law_words(curve: ScalingCurve) -> str:
    """What the scalability law says of it, or why there is none."""
    law = None if curve.rule == "none" else fit_usl(curve.measured, curve.rule)
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
