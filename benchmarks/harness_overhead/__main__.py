"""``python -m benchmarks.harness_overhead``: what checks, the record of links and counters add to a repetition."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import distributed

from benchmarks.rounds import machine
from benchmarks.task_rate.ratios import ratio
from gpubench.node.spec import WorkloadSpec
from gpubench.node.spec.sample_columns import Sample
from gpubench.node.workloads import families
from gpubench.node.workloads.base import Measurement, WorkloadContext
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.node.workloads.counters import Counters
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE
from gpubench.node.workloads.repetitions import measure

WORKLOADS: Mapping[str, Mapping[str, Any]] = {
    "merge": {"rows_per_worker": 500_000},
    "transpose-sum": {"size": 6000, "chunk": 1000},
    "sum": {"size": 6000, "chunk": 1000},
}

Way = Callable[[], tuple[float, float]]
"""Runs the repetitions once: mean seconds inside the clock, and seconds of all of it."""


def _ways(context: WorkloadContext, name: str, reps: int) -> dict[str, Way]:
    """``bare``: data made, the timed thing done. ``harness``: answers checked too. ``recorded``: links as well.

    ``counted``: as ``harness``, with the counters of all processes read around the clock.
    """

    def new(where: WorkloadContext = context) -> Measurement:
        defaults = {param: each.default for param, each in CATALOGUE[name].params.items()}
        return families.create(name, where, "dask", {**defaults, **WORKLOADS[name]})

    def bare() -> tuple[float, float]:
        began, measurement, times = time.perf_counter(), new(), []
        measurement.setup()
        for _ in range(reps + 1):
            measurement.prepare()
            times.append(measurement.once()[0])
        measurement.teardown()
        return statistics.fmean(times[1:]), time.perf_counter() - began

    def measured(recorded: bool, counters: Counters | None = None) -> tuple[float, float]:
        began, lines = time.perf_counter(), list[Sample]()
        measurement = new(dataclasses.replace(context, counters=counters))
        measurement.uses_transfer_log = recorded
        result = measure(
            measurement,
            WorkloadSpec(name, "dask", {}, reps=reps, warmup=1, timeout_s=math.inf),
            lines.append,
        )
        assert result.status == "ok", result.reason
        assert all((line["cpu_s"] is None) == (counters is None) for line in lines), lines
        return statistics.fmean(line["wall_s"] for line in lines if not line["warmup"]), time.perf_counter() - began

    return {
        "bare": bare,
        "harness": lambda: measured(False),
        "recorded": lambda: measured(True),
        "counted": lambda: measured(False, Counters(None, "here", {})),
    }


@contextlib.contextmanager
def _cluster(workers: int) -> Iterator[WorkloadContext]:
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield WorkloadContext(client, sorted(client.scheduler_info(n_workers=-1)["workers"]), 1, "cpu", "tcp")


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.harness_overhead", description=__doc__)
    parser.add_argument("--blocks", type=int, default=24)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--seed", type=int, default=20261121)
    asked = parser.parse_args()
    order = random.Random(asked.seed)
    os.environ[CLUSTER_VARIABLE] = f"benchmarks:{os.getpid()}:0"  # by which the counters find the cluster's processes
    print("| workload | compared | bare, s | inside the clock | all of it |\n|---|---|---|---|---|")
    with _cluster(asked.workers) as context:
        for name in asked.workloads:
            ways = _ways(context, name, asked.reps)
            blocks = []
            for number in range(asked.blocks + 1):
                words = list(ways)
                order.shuffle(words)
                found = {word: ways[word]() for word in words}
                blocks += [found] if number else []  # the first block warms everything up
            for word, below in (
                ("harness", "bare"),
                ("recorded", "harness"),
                ("recorded", "bare"),
                ("counted", "harness"),
            ):
                clock, whole = (ratio([(one[word][what], one[below][what]) for one in blocks]) for what in (0, 1))
                print(
                    f"| {name} | {word} / {below} | {statistics.median(one['bare'][0] for one in blocks):.4f} "
                    f"| {clock.ratio:.3f} ({clock.low:.3f}–{clock.high:.3f}) "
                    f"| {whole.ratio:.3f} ({whole.low:.3f}–{whole.high:.3f}) |",
                    flush=True,
                )
    print(machine())


if __name__ == "__main__":
    main()
