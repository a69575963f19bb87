"""From the runs' ``links.jsonl`` to the links of each workload under each variant, put together by worker."""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gpubench.model.plan import Place, Plan
from gpubench.node.spec import WorkloadSpec
from gpubench.stats.links import LinkRates
from gpubench.store.accounting import RunResult

SAME_NODE, TWO_NODES = "same node", "two nodes"

Row = Mapping[str, Any]
"""A line of ``links.jsonl``: ``receiver sender bytes count seconds workload params_id``."""


@dataclasses.dataclass(frozen=True)
class LinkTable:
    """All links of one workload under one variant at one place, over ``runs`` runs that are ok.

    ``nodes`` are the hosts of the workers by name; ``bytes`` moved over each ordered pair (sender, receiver) per run;
    ``directories`` the names of the runs' directories, in the order of the blocks.
    """

    workload: WorkloadSpec
    variant: str
    place: Place
    runs: int
    links: list[LinkRates]
    nodes: dict[str, str]
    bytes: dict[tuple[str, str], float]
    directories: tuple[str, ...]


def processes_by_address(provenance: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The processes of a run's ``provenance.json`` that have an address."""
    processes = provenance.get("processes", [])
    return {
        process["address"]: process for process in processes if isinstance(process, Mapping) and "address" in process
    }


def link_tables(plan: Plan, runs: Iterable[RunResult]) -> list[LinkTable]:
    """A table per workload, variant and place that moved anything between workers whose names the provenance has.

    In the plan's order, of runs that are ok. A worker is the same one in two runs when its host and its number there
    are.
    """
    by_table: dict[tuple[str, str, Place], list[_RunLinks]] = {}
    for run in runs:
        rows = run.links if run.status == "ok" else []
        if not rows or run.directory is None:
            continue
        names = _names(processes_by_address(run.provenance))
        by_workload: dict[str, list[Row]] = {}
        for row in rows:
            if isinstance(params_id := row.get("params_id"), str):
                by_workload.setdefault(params_id, []).append(row)
        for params_id in run.run.workloads:
            if params_id in by_workload:
                links = _RunLinks(run.directory.name, names, by_workload[params_id])
                by_table.setdefault((params_id, run.run.variant, run.job.place), []).append(links)
    tables = [
        _table(workload, variant.label, place, by_table[workload.params_id, variant.label, place])
        for workload in plan.workloads
        for variant in plan.variants
        for place in plan.places
        if (workload.params_id, variant.label, place) in by_table
    ]
    return [table for table in tables if table.links]


class _RunLinks(NamedTuple):
    """Of one workload in one run: the name of its directory, the workers' names by address, and its lines."""

    directory: str
    names: Mapping[str, str]
    rows: Sequence[Row]


def _table(workload: WorkloadSpec, variant: str, place: Place, runs: Sequence[_RunLinks]) -> LinkTable:
    nodes: dict[str, str] = {}
    rates: dict[tuple[str, str], list[float]] = {}
    moved: dict[tuple[str, str], float] = {}
    for run in runs:
        for row in run.rows:
            sender, receiver = (run.names.get(str(row[end])) for end in ("sender", "receiver"))
            if sender is None or receiver is None:
                continue  # without provenance nobody can say whose address that was
            pair = sender, receiver
            if pair not in moved:
                nodes |= {name: name.rpartition("/")[0] for name in pair}
                moved[pair], rates[pair] = 0.0, []
            size, seconds = float(row["bytes"]), float(row["seconds"])
            moved[pair] += size / len(runs)
            if size > 0 and seconds > 0:
                rates[pair].append(size / seconds)
    links = [
        LinkRates(*pair, SAME_NODE if nodes[pair[0]] == nodes[pair[1]] else TWO_NODES, tuple(values))
        for pair, values in sorted(rates.items())
    ]
    directories = tuple(run.directory for run in runs)
    return LinkTable(workload, variant, place, len(runs), links, dict(sorted(nodes.items())), moved, directories)


def _names(processes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """``HOST/NUMBER`` by address; workers are numbered on each host, in the order of rank and index in their names."""
    workers = [
        (str(process["host"]), [int(word) for word in re.findall(r"\d+", process["name"])], address)
        for address, process in processes.items()
        if "name" in process
    ]
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for host, _, address in sorted(workers):
        names[address] = f"{host}/{counts.setdefault(host, 0)}"
        counts[host] += 1
    return names
