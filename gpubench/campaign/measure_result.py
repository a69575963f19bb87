"""What the measurement of one workload found: as one object, and as lines for people."""

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpubench.errors import IncompleteError
from gpubench.model.parameters import sizes_spelled
from gpubench.model.quantities import format_bytes
from gpubench.model.text import counted
from gpubench.node.spec.plain import parse_lines
from gpubench.node.spec.records import LINKS_FILE, SAMPLES_FILE
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.results.merge.moved import cannot_change, is_unlogged, moved_bytes
from gpubench.stats.data import LEAST_TRAFFIC
from gpubench.store.campaign import Campaign
from gpubench.store.states import account_now

MEASURE = "gpubench/measure/1"
SHOWN = 12
"""Repetitions that are shown one by one; ``--json`` has them all."""
_BYTES = ("seen_bytes", "least_moved_bytes", "keys_left")
_OF_RECORD = ("site", "nodes", "threads_per_worker", "device", "protocol", "transport")
_OF_IMAGE = ("variant", "ucx_version", "image", "hosts")


def measured(campaign: Campaign, *, held: int, memory: int) -> dict[str, Any]:
    """The object that ``--json`` prints: seconds and bytes; ``status`` is ``ok failed skipped lost``.

    Rates are of the median repetition, and 0 where nothing was counted.

    Args:
        campaign: of one block, one variant and one workload, which has been run.
        held: bytes that a worker holds at the worst moment.
        memory: bytes that it has, 0: not known.
    """
    (spec,), (outcome,) = campaign.plan.workloads, account_now(campaign).outcomes
    record = outcome.record
    ended = next(iter(record.workloads), None) if record else None
    failed = ended if ended and ended.status != "ok" else outcome
    samples = _lines(outcome.directory, SAMPLES_FILE)
    timed = [row for row in samples if not row["warmup"]]
    seconds = [float(row["wall_s"]) for row in timed]
    median = statistics.median(seconds) if seconds else 0.0
    nominal = int(timed[0]["bytes"]) if timed else 0
    tasks = int(spec.params["count"]) if timed and spec.name == "tasks" else 0  # others may have a parameter count
    workers = outcome.job.nodes * outcome.job.workers_per_node
    bytes_per_s = nominal / median if median else 0.0
    details = ended.details if ended else {}
    moved: dict[str, Any] = {name: details.get(name, 0) for name in _BYTES}
    if is_unlogged(spec.name, spec.backend, spec.params):
        moved["seen_bytes"] = None
    return {
        "schema": MEASURE,
        "workload": spec.name,
        "backend": spec.backend,
        "params": spec.params,
        "params_id": spec.params_id,
        "cluster": {name: getattr(record, name) for name in _OF_RECORD + _OF_IMAGE if record}
        | {"workers": workers, "memory_per_worker": memory, "held_per_worker": held},
        "status": failed.status,
        "reason": failed.reason,
        "warmup": spec.warmup,
        "reps": len(seconds),
        "wall_s": seconds,
        "median_s": median,
        "least_s": min(seconds, default=0.0),
        "most_s": max(seconds, default=0.0),
        "bytes": nominal,
        "bytes_per_s": bytes_per_s,
        "bytes_per_s_per_worker": bytes_per_s / workers,
        "tasks_per_s": tasks / median if tasks and median else None,
        "answer": samples[-1]["answer"] if samples else "unchecked",
        "check": {name: value for name, value in details.items() if name not in _BYTES},
        "moved": moved | {"links": _lines(outcome.directory, LINKS_FILE)},
        "warnings": record.warnings if record else [],
        "campaign": str(campaign.directory),
        "directory": str(outcome.directory or ""),
    }


def _lines(directory: Path | None, name: str) -> list[dict[str, Any]]:
    file = directory / name if directory else None
    return parse_lines(file.read_text(encoding="utf-8")) if file and file.exists() else []


def require_ok(result: Mapping[str, Any]) -> None:
    """Raise IncompleteError unless the workload was measured and its answers were right."""
    if result["status"] != "ok":
        raise IncompleteError(
            f"{result['workload']} {result['status']}: {result['reason'] or 'no reason given'}",
            then=f"see {result['directory'] or result['campaign']}",
        )


def result_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """The same for a terminal."""
    yield ""
    yield f"{result['workload']}, {result['backend']}: {result['status']}"
    yield f"  sizes    {sizes_spelled(CATALOGUE.get(result['workload']), result['params'])}"
    if "site" in result["cluster"]:
        yield f"  cluster  {_cluster(result['cluster'])}"
    if reps := result["reps"]:
        each = " ".join(f"{wall_s:.4g}" for wall_s in result["wall_s"][:SHOWN])
        more = f" ... {reps - SHOWN} more" if reps > SHOWN else ""
        yield f"  seconds  {each}{more}  ({counted(reps, 'repetition')} after {result['warmup']} to warm up)"
        yield f"  median   {result['median_s']:.4g} s, from {result['least_s']:.4g} to {result['most_s']:.4g}"
        yield f"  rate     {_rate(result)}"
        yield f"  moved    {_moved(result)}"
    figures = [
        f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in result["check"].items()
        if isinstance(value, (str, int, float))  # nested ones are in the JSON
    ]
    yield f"  check    {': '.join(filter(None, [result['answer'], ', '.join(figures)]))}"
    yield from (f"  warning  {warning}" for warning in result["warnings"])
    yield f"  files    {result['directory'] or result['campaign']}"


def _moved(result: Mapping[str, Any]) -> str:
    details = result["moved"]
    if details["seen_bytes"] is None:
        return "not known: it passes none of Dask's logs"
    each = details["seen_bytes"] // max(result["reps"], 1)
    seen = f"{format_bytes(details['seen_bytes'])} between workers, {format_bytes(each)} a repetition"
    if least := details["least_moved_bytes"]:  # of all repetitions, too
        return f"{seen} (at least {format_bytes(least // max(result['reps'], 1))} had to be)"
    moved = moved_bytes(result["workload"], result["backend"], result["params"], details, result["reps"])
    if moved is None or moved >= LEAST_TRAFFIC:
        return seen
    return f"{seen}: {cannot_change(result['workload'])}"


def _cluster(cluster: Mapping[str, Any]) -> str:
    counts = f"{counted(cluster['nodes'], 'node')}, {counted(cluster['workers'], 'worker')}"
    threads = counted(cluster["threads_per_worker"], "thread")
    transport = f" over {', '.join(cluster['transport'])}" if cluster["transport"] else ""
    ucx = f", UCX {cluster['ucx_version']}" if cluster["protocol"] != "tcp" and cluster["ucx_version"] else ""
    return f"{cluster['site']}: {counts} of {threads}, {cluster['device']}, {cluster['protocol']}{transport}{ucx}"


def _rate(result: Mapping[str, Any]) -> str:
    if not result["bytes"]:
        return f"{result['tasks_per_s']:.4g} tasks/s" if result["tasks_per_s"] else "none"
    rates = [f"{format_bytes(result[name])}/s" for name in ("bytes_per_s", "bytes_per_s_per_worker")]
    return f"{rates[0]}, {rates[1]} per worker ({format_bytes(result['bytes'])} counted)"
