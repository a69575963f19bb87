"""Benchmarks of somebody else, run as they are."""

import shlex
from typing import Any, Mapping

from gpubench.workloads.catalogue.entry import Param, Workload

BENCHMARKS = (
    "local_cudf_merge",
    "local_cudf_shuffle",
    "local_cudf_groupby",
    "local_cupy",
    "local_cupy_map_overlap",
    "read_parquet",
)
OURS = {
    "--scheduler-address": "the cluster is ours",
    "--scheduler-file": "the cluster is ours",
    "--shutdown-external-cluster-on-exit": "the cluster is ours",
    "--multi-node": "the cluster is ours",
    "--hosts": "the cluster is ours",
    "--protocol": "the plan's protocol is used",
    "-p": "the plan's protocol is used",
    "--type": "the plan's device is used",
    "-t": "the plan's device is used",
    "--runs": "say reps",
    "--warmup-runs": "say warmup",
    "--output-basename": "results come into the run record",
    "--profile": "it would be timed",
}
"""Options that can't be given, each with its reason."""


def _fault(_backend: str, params: Mapping[str, Any]) -> str:
    try:
        words = shlex.split(params["options"])
    except ValueError as error:
        return f"options: {error}"
    given = [word.partition("=")[0] for word in words]
    return next((f"options can't have {word}: {OURS[word]}" for word in given if word in OURS), "")


WORKLOADS = (
    Workload(
        name="upstream",
        factory="upstream:Upstream",
        family="upstream",
        source="dask_cuda.benchmarks",
        scaling="none",
        params={
            "benchmark": Param("choice", "local_cudf_merge", "module of dask_cuda.benchmarks", choices=BENCHMARKS),
            "options": Param("name", "", "its own options, as typed in a shell: `-c 1000000 --frac-match 0.6`"),
        },
        timed="what the benchmark times, by its own clock; one timed run per repetition, each in a process of its own",
        counted="what the benchmark says that it has processed",
        oracle="none of its own, so answers are `unchecked`: its workers must be ours, its seconds within its process'",
        needs={"dask": ("dask-cuda",)},
        fault=_fault,
    ),
)
