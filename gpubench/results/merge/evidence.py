"""What a run's provenance and record prove and measure beside its times. Every key of them may be missing. Pure."""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from gpubench.node.spec import RunRecord
from gpubench.results.merge.provenance import Facts, facts, is_oversubscribed

NOISE = {
    "load": "load average, mean",
    "busy": "processors busy, mean %",
    "steal": "stolen by other machines, mean %",
    "speed_ms": "speed probe, median worker, ms",
    "slowest": "slowest worker over median, worst probe",
    "first_worker": "first worker registered, s",
    "half_workers": "half of them registered, s",
    "all_workers": "all workers registered, s",
}
"""Numbers that say how disturbed a run was, and how long it took to start; what each is, in words."""
_LOAD = {"load": "load1", "busy": "busy", "steal": "steal"}


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Of one run.

    Args:
        facts: what it used, by field and host.
        noise: by the names in ``NOISE``; what wasn't recorded is left out.
        by_host: load, busy and steal of every node.
        oversubscribed: more processes polled on a machine than it has cores.
    """

    facts: Facts
    noise: Mapping[str, float]
    by_host: Mapping[str, Mapping[str, float]]
    oversubscribed: bool = False


def evidence(provenance: Mapping[str, Any], record: RunRecord | None, protocol: str) -> Evidence:
    """That of a run."""
    by_host = {str(node["host"]): _loads([node]) for node in entries([provenance], "nodes") if "host" in node}
    return Evidence(
        facts(provenance), noise(provenance, record), by_host, oversubscribed=is_oversubscribed(provenance, protocol)
    )


def noise(provenance: Mapping[str, Any], record: RunRecord | None = None) -> dict[str, float]:
    """Numbers of one run by their names in ``NOISE``."""
    numbers = _loads(list(entries([provenance], "nodes")))
    probes = [row["wall_s"] for row in entries([provenance], "speed") if isinstance(row.get("wall_s"), list)]
    if times := [float(wall_s) for row in probes for wall_s in row if _is_time(wall_s)]:
        numbers["speed_ms"] = 1000 * statistics.median(times)
        of_each = ([time for time in wall_s if _is_time(time)] for wall_s in zip(*probes, strict=False))
        ratios = (max(of_probe) / statistics.median_low(of_probe) for of_probe in of_each if of_probe)
        numbers["slowest"] = max(ratios, default=1.0)
    phases = record.phases if record else {}
    return numbers | {name: float(phases[name]) for name in NOISE if isinstance(phases.get(name), int | float)}


def _loads(nodes: list[Mapping[str, Any]]) -> dict[str, float]:
    return {name: statistics.fmean(values) for name, key in _LOAD.items() if (values := series(nodes, key))}


def entries(records: Iterable[Mapping[str, Any]], key: str) -> Iterator[Mapping[str, Any]]:
    """Every object in the lists at ``key``."""
    for record in records:
        listed = record.get(key)
        if isinstance(listed, list):
            yield from (item for item in listed if isinstance(item, dict))


def series(nodes: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    """What the nodes recorded of ``load1``, ``busy`` or ``steal`` while the run went on, joined."""
    values = [entry.get(name) for entry in entries(nodes, "load")]
    if set(map(type, values)) == {float}:  # a second of every run is one: by far the most
        return cast("list[float]", values)
    return [float(value) for value in values if isinstance(value, (float, int))]


def _is_time(value: Any) -> bool:
    """Whether it is seconds of a probe that was made: hand-made or damaged provenance may hold anything."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
