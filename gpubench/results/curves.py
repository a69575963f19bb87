"""Curves: what each workload took under each variant at every size of the cluster. Pure."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.results.results import Results
from gpubench.stats.data import CellRun, Key
from gpubench.stats.runs import number_runs
from gpubench.stats.scaling import Rule, ScalingPoint
from gpubench.stats.settings import Summary

GROWS = ("base_chunks", "other_chunks")
"""Parameters of other tools that follow the size of the cluster."""
_SIZE = ("nodes", "workers", "workers_per_node", "threads_per_worker")
_Size = tuple[int, int, int]
"""Nodes, workers per node and threads per worker; where nodes aren't recorded, all threads are those of one."""


@dataclasses.dataclass(frozen=True)
class Curve:
    """One workload under one variant; ``measured`` has an entry per size, ascending.

    ``by_node``: it is known how many nodes there were.
    """

    key: Key
    variant: str
    rule: Rule
    measured: list[ScalingPoint]
    by_node: bool


def curves(results: Results, summary: Summary = "mean") -> list[Curve]:
    """One per workload and variant, in their order; of runs that are ``ok``, and whose size is known.

    ``summary`` makes the number of a run from its samples.
    """
    by_curve: dict[Key, dict[str, list[tuple[_Size | None, CellRun]]]] = {}
    for key in results.keys:
        by_curve.setdefault(workload_of(key), {variant: [] for variant in results.variants})
    for run in results.runs:
        by_curve[workload_of(run.key)][run.variant].append((_size(run), run))
    return [
        _curve(key, variant, runs, summary)
        for key, variants in by_curve.items()
        for variant, runs in variants.items()
        if runs and any(size for size, _ in runs)
    ]


def workload_of(key: Key) -> Key:
    """A cell without its size."""
    return tuple(
        (name, _without_growth(value) if name == "params" else value) for name, value in key if name not in _SIZE
    )


def _without_growth(params: str) -> str:
    if not any(name in params for name in GROWS):
        return params
    plain = {name: value for name, value in json.loads(params).items() if name not in GROWS}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _size(run: CellRun) -> _Size | None:
    """None where the workers aren't recorded."""
    cell = dict(run.key)
    threads = int(cell.get("threads_per_worker") or 1)
    if cell.get("nodes") and cell.get("workers_per_node"):
        return int(cell["nodes"]), int(cell["workers_per_node"]), threads
    return None if run.workers is None else (1, run.workers * threads, 1)


def _curve(key: Key, variant: str, runs: Sequence[tuple[_Size | None, CellRun]], summary: Summary) -> Curve:
    sizes: dict[_Size, list[CellRun]] = {}
    for size, run in runs:
        if size is not None:
            sizes.setdefault(size, []).append(run)
    measured = [ScalingPoint(*size, tuple(_logs(sizes[size], summary))) for size in sorted(sizes)]
    by_node = all({"nodes", "workers_per_node"} <= dict(run.key).keys() for _, run in runs)
    return Curve(key, variant, rule_of(dict(key)), measured, by_node)


def _logs(runs: Iterable[CellRun], summary: Summary) -> list[float]:
    """Log seconds of every run; the samples of all runs with as many samples are taken at once."""
    by_run: dict[str, tuple[float, ...]] = {}
    for run in runs:
        if run.times:
            by_run[run.run] = (*by_run.get(run.run, ()), *run.times)
    by_count: dict[int, list[str]] = {}
    for name, times in by_run.items():
        by_count.setdefault(len(times), []).append(name)
    logs: dict[str, float] = {}
    for names in by_count.values():
        numbers = number_runs(np.asarray([by_run[name] for name in names])).summary(summary)
        logs |= dict(zip(names, numbers.tolist(), strict=True))
    return [logs[name] for name in by_run]


def rule_of(cell: dict[str, Any]) -> Rule:
    """How the work of a cell grows; of names that gpubench doesn't know, nothing is known."""
    known = CATALOGUE.get(str(cell["workload"]))
    return cast("Rule", known.scaling) if known else "none"
