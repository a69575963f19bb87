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

GROWS = ("base_chunks", "other_chunks")
"""Parameters of other tools that follow the size of the cluster."""
_SIZE = ("nodes", "workers", "workers_per_node", "threads_per_worker")
_Size = tuple[int, int, int]
"""Nodes, workers per node and threads per worker."""


@dataclasses.dataclass(frozen=True)
class Curve:
    """One workload under one variant; ``measured`` has an entry per size, ascending.

    ``by_node``: it is known of all sizes how many nodes there were; else their workers are given as those of one node.
    """

    key: Key
    variant: str
    rule: Rule
    measured: list[ScalingPoint]
    by_node: bool


def curves(results: Results) -> list[Curve]:
    """One per workload and variant, in their order; of runs that are ``ok``, and whose size is known."""
    by_curve: dict[Key, dict[str, list[CellRun]]] = {}
    for key in results.keys:
        by_curve.setdefault(workload_of(key), {variant: [] for variant in results.variants})
    for run in results.runs:
        by_curve[workload_of(run.key)][run.variant].append(run)
    return [
        _curve(key, variant, runs)
        for key, variants in by_curve.items()
        for variant, runs in variants.items()
        if any(map(_workers, runs))
    ]


def workload_of(key: Key) -> Key:
    return tuple(
        (name, _without_growth(value) if name == "params" else value) for name, value in key if name not in _SIZE
    )


def _without_growth(params: str) -> str:
    if not any(name in params for name in GROWS):
        return params
    plain = {name: value for name, value in json.loads(params).items() if name not in GROWS}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _curve(key: Key, variant: str, runs: Sequence[CellRun]) -> Curve:
    sized = [run for run in runs if _workers(run)]
    by_node = all(_nodes(run) is not None for run in sized)
    sizes: dict[_Size, list[CellRun]] = {}
    for run in sized:
        sizes.setdefault(_size(run, by_node=by_node), []).append(run)
    measured = [ScalingPoint(*size, tuple(_logs(sizes[size]))) for size in sorted(sizes)]
    return Curve(key, variant, rule_of(dict(key)), measured, by_node)


def _nodes(run: CellRun) -> int | None:
    """As recorded, or by the workers on each; None where neither is known."""
    cell = dict(run.key)
    if cell.get("nodes") and cell.get("workers_per_node"):
        return int(cell["nodes"])
    return run.workers // int(cell["workers_per_node"]) if run.workers and cell.get("workers_per_node") else None


def _workers(run: CellRun) -> int:
    """All of the cluster; 0 where that isn't known."""
    cell = dict(run.key)
    return run.workers or int(cell.get("nodes") or 0) * int(cell.get("workers_per_node") or 0)


def _size(run: CellRun, *, by_node: bool) -> _Size:
    threads = int(dict(run.key).get("threads_per_worker") or 1)
    nodes = (_nodes(run) if by_node else None) or 1
    return nodes, _workers(run) // nodes, threads


def _logs(runs: Iterable[CellRun]) -> list[float]:
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
        numbers = number_runs(np.asarray([by_run[name] for name in names])).log_mean
        logs |= dict(zip(names, numbers.tolist(), strict=True))
    return [logs[name] for name in by_run]


def rule_of(cell: dict[str, Any]) -> Rule:
    """How the work of a cell grows; of names that gpubench doesn't know, nothing is known."""
    workload = CATALOGUE.get(str(cell["workload"]))
    return cast("Rule", workload.scaling) if workload else "none"
