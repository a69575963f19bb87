"""``python -m benchmarks.task_rate``: our ``tasks`` against parsl-perf and against a bare Dask loop."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import tempfile
import time
from collections.abc import Iterator

import distributed
from parsl.benchmark import perf

from benchmarks.task_rate.ratios import Way, interleaved, ratio
from gpubench.node.workloads import families, process_reaper
from gpubench.node.workloads.base import WorkloadContext
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.node.workloads.task_clients import MARK
from gpubench.node.workloads.tasks import seven
from gpubench.node.workloads.tasks_parsl import ParslSubmitter


@contextlib.contextmanager
def dask_ways(workers: int, tasks: int) -> Iterator[tuple[Way, Way]]:
    """The workload as in a run, and what anybody would write by hand, on one cluster."""
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
    ):
        context = WorkloadContext(client, sorted(client.scheduler_info(n_workers=-1)["workers"]), 1, "cpu", "tcp")
        defaults = {name: param.default for name, param in CATALOGUE["tasks"].params.items()}
        measurement = families.create("tasks", context, "dask", {**defaults, "count": tasks})
        measurement.setup()

        def ours() -> float:
            measurement.prepare()
            wall_s, _ = measurement.once()
            return tasks / wall_s

        def theirs() -> float:
            measurement.prepare()
            start = time.perf_counter()
            client.gather(client.map(seven, range(tasks), pure=False))
            return tasks / (time.perf_counter() - start)

        yield ours, theirs
        measurement.teardown()


@contextlib.contextmanager
def parsl_ways(workers: int, tasks: int) -> Iterator[tuple[Way, Way]]:
    """A batch of ours and one iteration of parsl-perf's own function, on one interchange and its workers."""
    with tempfile.TemporaryDirectory(prefix="task-rate-") as folder, contextlib.chdir(folder):
        facts = {"config": "", "provider": "local", "address": "127.0.0.1", "nodes": 1, "argsize": 0}
        submitter = ParslSubmitter({**facts, "workers_per_node": workers})

        def ours() -> float:
            return tasks / submitter.batch(tasks).run_s

        def theirs() -> float:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                perf.performance(resources={}, target_t=1.0, args_extra_size=0, iterate_mode=[tasks])
            return float(re.findall(r"Tasks per second: ([\d.]+)", said.getvalue())[-1])

        yield ours, theirs
        submitter.close()


WAYS = {"client.map": dask_ways, "parsl-perf": parsl_ways}


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.task_rate", description=__doc__)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--against", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--seed", type=int, default=20260101)
    options = parser.parse_args()
    token = str(os.getpid())
    os.environ.update({"SPT_NOENV": "1", MARK: token})
    guard = process_reaper.guard(MARK, token)  # parsl's processes end with us, however we end
    order = random.Random(options.seed)
    print(f"{options.blocks} blocks of {options.tasks} tasks, {os.cpu_count()} cores\n")
    print("| against | workers | ours, tasks/s | theirs, tasks/s | ratio of rates | 95 % interval |")
    print("|---|---|---|---|---|---|")
    for name in options.against:
        for workers in options.workers:
            with WAYS[name](workers, options.tasks) as (ours, theirs):
                found = ratio(interleaved(ours, theirs, options.blocks, order))
            figures = f"{found.ours:.0f} | {found.theirs:.0f} | {found.ratio:.3f} | {found.low:.3f}–{found.high:.3f}"
            print(f"| {name} | {workers} | {figures} |", flush=True)
    assert guard.stdin is not None
    guard.stdin.close()


if __name__ == "__main__":
    main()
