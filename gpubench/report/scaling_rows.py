"""Rows of the page's sections on scaling and on the scheduler's share."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from gpubench.merge.curves import ScalingCurve, SchedulerShare, curves, scheduler_shares
from gpubench.model.plan import Place
from gpubench.report import labels, scaling_charts
from gpubench.report.inputs import ReportInputs
from gpubench.report.scaling import RULES, curve_key, law_words, percent, ratio_words, sizes_of
from gpubench.report.tables import NUMBER, PageTable, linked
from gpubench.spec.plain import canonical


@dataclasses.dataclass(frozen=True)
class Scaling:
    """One workload over the sizes of the cluster; no chart where its work says nothing of scaling."""

    anchor: str
    name: str
    rule: str
    chart: dict[str, Any] | None
    laws: list[tuple[str, str]]
    table: PageTable


@dataclasses.dataclass(frozen=True)
class Overhead:
    """The scheduler's share of every workload that was also measured with tasks that do nothing."""

    chart: dict[str, Any]
    table: PageTable


def scaling(inputs: ReportInputs, anchors: Sequence[str]) -> list[Scaling]:
    """Workloads with runs at two sizes or more.

    Args:
        inputs: of the report.
        anchors: parts of the page that a size may lead to, for its runs and raw files.
    """
    by_workload: dict[str, list[ScalingCurve]] = {}
    for curve in curves(inputs.plan, inputs.cells):
        by_workload.setdefault(curve.workload.params_id, []).append(curve)
    keys = [curve_key(several[0]) for several in by_workload.values()]
    found = zip(by_workload.values(), labels.cell_names(keys), strict=True)
    return [_scaling(several, name, inputs, anchors) for several, name in found if _is_scaled(several)]


def overhead(inputs: ReportInputs, anchors: Sequence[str]) -> Overhead | None:
    """None where no workload was measured both ways."""
    shares = scheduler_shares(inputs.plan, inputs.cells)
    if not shares:
        return None
    order = [(one.name, canonical(one.params)) for one in inputs.plan.workloads]
    # The variants of one workload at one place stand together: they are what is compared.
    shares.sort(key=lambda one: (order.index((one.workload, canonical(one.params))), one.place))
    names = labels.cell_names([_share_key(one) for one in shares])
    several = len(inputs.plan.variants) > 1
    bars = [f"{name} · {one.variant}" if several else name for one, name in zip(shares, names, strict=True)]
    ids = {(one.name, canonical(one.params)): one.params_id for one in inputs.plan.workloads if one.backend == "dask"}
    rows = [
        (
            linked(name, _link(ids[one.workload, canonical(one.params)], one.place, anchors)),
            one.variant,
            f"{one.place[0]} x {one.place[1]}",
            percent(one.share),
            str(one.runs),
        )
        for one, name in zip(shares, names, strict=True)
    ]
    caption = "The scheduler’s share of each workload’s time by variant, with 95 % intervals"
    return Overhead(scaling_charts.overhead(shares, bars), PageTable(caption, _SHARE_COLUMNS, rows))


def _is_scaled(several: Sequence[ScalingCurve]) -> bool:
    return any(sum(bool(one.logs) for one in curve.measured) > 1 for curve in several)


def _scaling(several: Sequence[ScalingCurve], name: str, inputs: ReportInputs, anchors: Sequence[str]) -> Scaling:
    workload, rule = several[0].workload, several[0].rule
    labels_ = [one.label for one in inputs.plan.variants]
    title = f"{name}: efficiency over worker threads, with 95 % intervals"
    return Scaling(
        anchor=f"scaling-{workload.params_id}",
        name=name,
        rule=RULES[rule],
        chart=scaling_charts.efficiency(several, labels_, title),
        laws=[] if rule == "none" else [(curve.variant, law_words(curve)) for curve in several],
        table=PageTable(
            f"Seconds, speed-up and efficiency of {name} by variant and size, with 95 % intervals",
            _SIZE_COLUMNS,
            [
                (
                    curve.variant,
                    f"{one.at.nodes} x {one.at.workers_per_node}",
                    str(one.at.units),
                    linked(
                        labels.seconds(one.seconds.value),
                        _link(workload.params_id, (one.at.nodes, one.at.workers_per_node), anchors),
                    ),
                    *ratio_words(one),
                    str(len(one.at.logs)),
                )
                for curve in several
                for one in sizes_of(curve.measured, curve.rule)
            ],
        ),
    )


_SIZE_COLUMNS = (
    ("Variant", ""),
    *((name, NUMBER) for name in ("Nodes x workers", "Threads", "Time", "Speed-up", "Efficiency", "Runs")),
)
_SHARE_COLUMNS = (
    ("Workload", ""),
    ("Variant", ""),
    *((name, NUMBER) for name in ("Nodes x workers", "Scheduler’s share", "Runs")),
)


def _share_key(one: SchedulerShare) -> dict[str, object]:
    nodes, workers = one.place
    params = canonical(one.params).decode()
    return {"workload": one.workload, "params": params, "nodes": nodes, "workers_per_node": workers}


def _link(params_id: str, place: Place, anchors: Sequence[str]) -> str:
    anchor = f"samples-{params_id}-{place[0]}-{place[1]}"
    return f"#{anchor}" if anchor in anchors else ""
