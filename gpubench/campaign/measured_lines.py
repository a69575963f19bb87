"""What the measurement of one workload found, as lines for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpubench.model.parameters import sizes_spelled
from gpubench.model.quantities import format_bytes
from gpubench.model.text import counted
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.results.merge.moved import cannot_change, moved_bytes
from gpubench.stats.data import LEAST_TRAFFIC

SHOWN = 12
"""Repetitions that are shown one by one; ``--json`` has them all."""


def result_lines(result: Mapping[str, Any]) -> Iterator[str]:
    cluster = result["cluster"]
    yield ""
    yield f"{result['workload']}, {result['backend']}: {result['status']}"
    yield _line("sizes", sizes_spelled(CATALOGUE.get(result["workload"]), result["params"]))
    yield _line("cluster", _cluster(cluster))
    if result["reps"]:
        each = " ".join(f"{wall_s:.4g}" for wall_s in result["wall_s"][:SHOWN])
        more = f" ... {result['reps'] - SHOWN} more" if result["reps"] > SHOWN else ""
        yield _line("seconds", f"{each}{more}  ({result['reps']} repetitions after {result['warmup']} to warm up)")
        yield _line("median", f"{result['median_s']:.4g} s, from {result['least_s']:.4g} to {result['most_s']:.4g}")
        yield _line("rate", _rate(result))
    plain = {name: value for name, value in result["check"].items() if isinstance(value, (str, int, float))}
    check = ", ".join(f"{name} {_figure(value)}" for name, value in plain.items())  # nested ones are in the JSON
    yield _line("check", f"{result['answer']}{f': {check}' if check else ''}")
    if result["reps"]:
        yield _line("moved", _moved(result))
    for warning in result["warnings"]:
        yield _line("warning", warning)
    yield _line("files", result["directory"] or result["campaign"])


def _moved(result: Mapping[str, Any]) -> str:
    details, reps = result["moved"], result["reps"]
    seen = f"{format_bytes(details['seen_bytes'])} between workers"
    if least := details["least_moved_bytes"]:
        return f"{seen}, {format_bytes(least)} at least had to be"
    moved = moved_bytes(result["workload"], result["backend"], result["params"], details, reps)
    if moved is None or moved >= LEAST_TRAFFIC:
        return seen
    return f"{seen}, {format_bytes(moved)} a repetition: {cannot_change(result['workload'])}"


def _cluster(cluster: Mapping[str, Any]) -> str:
    transport = f" over {', '.join(cluster['transport'])}" if cluster["transport"] else ""
    ucx = f", UCX {cluster['ucx_version']}" if cluster["protocol"] != "tcp" and cluster["ucx_version"] else ""
    counts = [counted(cluster["nodes"], "node"), counted(cluster["workers"], "worker")]
    return (
        f"{cluster['site']}: {', '.join(counts)} of {counted(cluster['threads_per_worker'], 'thread')}, "
        f"{cluster['device']}, {cluster['protocol']}{transport}{ucx}"
    )


def _rate(result: Mapping[str, Any]) -> str:
    if result["bytes"]:
        return (
            f"{format_bytes(result['bytes_per_s'])}/s, {format_bytes(result['bytes_per_s_per_worker'])}/s per worker "
            f"({format_bytes(result['bytes'])} counted)"
        )
    return f"{result['tasks_per_s']:.4g} tasks/s" if result["tasks_per_s"] else "none"


def _figure(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _line(name: str, text: str) -> str:
    return f"  {name:<8} {text}"
