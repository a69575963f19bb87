"""``python -m benchmarks.against_dask_cuda``: wall times of ours over dask-cuda's own, workload by workload."""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.against_dask_cuda.peer import Cluster, cluster, install
from benchmarks.rounds import machine
from benchmarks.task_rate.ratios import Way, interleaved, ratio

PAIRS: dict[str, tuple[Sequence[str], str, Sequence[str]]] = {
    "merge": (["rows_per_worker=500000"], "local_cudf_merge", ["-c", "500000"]),
    "shuffle": (
        ["in_parts=8", "partition_size=16MiB", "method=tasks"],
        "local_cudf_shuffle",
        ["--in-parts", "8", "--partition-size", "16 MiB"],
    ),
    "groupby": (
        ["in_parts=4", "rows_per_chunk=500000", "generate=true"],
        "local_cudf_groupby",
        ["--in-parts", "4", "-c", "500000"],
    ),
    "transpose-sum": (
        ["size=6000", "chunk=1000"],
        "local_cupy",
        ["-o", "transpose_sum", "-s", "6000", "-c", "1000"],
    ),
    "sum": (["size=6000", "chunk=1000"], "local_cupy", ["-o", "sum", "-s", "6000", "-c", "1000"]),
}
"""Workload: our settings, the peer's module and its words; the same sizes."""


def _ways(shared: Cluster, name: str, reps: int) -> tuple[Way, Way]:
    settings, module, words = PAIRS[name]
    gpubench = Path(sys.executable).with_name("gpubench")

    def ours() -> float:
        return statistics.fmean(shared.ours(gpubench, name, settings, reps))

    def theirs() -> float:
        return statistics.fmean(shared.theirs(module, words, reps))

    return ours, theirs


def main() -> None:
    """Print one line per workload."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against_dask_cuda", description=__doc__)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--workloads", nargs="+", choices=PAIRS, default=list(PAIRS))
    parser.add_argument("--seed", type=int, default=20261121)
    asked = parser.parse_args()
    python = install(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpubench-benchmarks")
    print("workload | ours, s | dask-cuda, s | ratio of wall times [95 %] | machine")
    for name in asked.workloads:
        with tempfile.TemporaryDirectory() as folder, cluster(python, asked.workers, Path(folder)) as shared:
            ways = _ways(shared, name, asked.reps)
            found = ratio(interleaved(*ways, asked.blocks, random.Random(asked.seed)))
        print(
            f"{name} | {found.ours:.4f} | {found.theirs:.4f} | {found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}] "
            f"| {machine()}",
            flush=True,
        )


if __name__ == "__main__":
    main()
