"""A campaign's verdicts as OpenMetrics text, for Prometheus' textfile collector. Pure.

The labels of a series say what is compared and not which campaign it was, so that the next campaign continues it. When
the campaign was planned stands in a series of its own: what is old can be alarmed about.

https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

import datetime as dt
from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.openmetrics.exposition import generate_latest

from gpubench.model.plan import Plan
from gpubench.stats.verdict import Verdict

VERDICTS = ("broken", "equivalent", "improvement", "inconclusive", "regression")
CELL = ("workload", "backend", "params", "nodes", "workers_per_node", "threads_per_worker", "protocol", "device")
"""Parts of a cell's key that are labels; what a plan doesn't know is empty."""
NUMBERS: Mapping[str, str] = {
    "effect": "Time of the candidate over the baseline's, minus one",
    "low": "Lower bound of the effect's unadjusted 95 % interval",
    "high": "Upper bound of the effect's unadjusted 95 % interval",
    "low_adjusted": "Lower bound at the level at which Holm decided the comparison",
    "high_adjusted": "Upper bound at the level at which Holm decided the comparison",
}


def text(plan: Plan, verdicts: Sequence[Verdict]) -> bytes:
    """``gpubench_effect_ratio`` and its bounds, ``gpubench_blocks``, ``gpubench_verdict`` (1 for the verdict that a
    comparison has, 0 for each other one) and ``gpubench_planned_timestamp_seconds``: gauges. What is undefined has no
    series.
    """
    registry = CollectorRegistry()
    campaign = {"site": plan.site.name, "suite": plan.suite}
    names = [*campaign, *CELL, "baseline", "candidate"]
    ratios = {name: Gauge(f"gpubench_{name}_ratio", what, names, registry=registry) for name, what in NUMBERS.items()}
    blocks = Gauge("gpubench_blocks", "Complete blocks of the comparison", names, registry=registry)
    states = Gauge("gpubench_verdict", "Which verdict the comparison has", [*names, "verdict"], registry=registry)
    for verdict in verdicts:
        labels = {
            **campaign,
            **{name: str(verdict.key.get(name, "")) for name in CELL},
            "baseline": verdict.baseline,
            "candidate": verdict.candidate,
        }
        for name, gauge in ratios.items():
            if (value := getattr(verdict, name)) is not None:
                gauge.labels(**labels).set(value)
        blocks.labels(**labels).set(verdict.blocks)
        for name in VERDICTS:
            states.labels(**labels, verdict=name).set(name == verdict.verdict)
    planned = Gauge(
        "gpubench_planned_timestamp_seconds",
        "When the campaign was planned",
        [*campaign, "campaign"],
        registry=registry,
    )
    planned.labels(**campaign, campaign=plan.campaign).set(dt.datetime.fromisoformat(plan.created_at).timestamp())
    return bytes(generate_latest(registry))  # type: ignore[no-untyped-call]
