"""What a run's provenance and record prove and measure beside its times. Pure."""

import dataclasses
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from gpubench.node.spec import RunRecord
from gpubench.node.spec.waiting import crowded_hosts
from gpubench.results.merge.provenance import ProvenanceFacts, facts

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

    facts: ProvenanceFacts
    noise: Mapping[str, float]
    by_host: Mapping[str, Mapping[str, float]]
    oversubscribed: bool = False


def evidence(provenance: Mapping[str, Any], record: RunRecord | None, protocol: str) -> Evidence:
    """That of a run; one that left no provenance, or one that somebody has edited, says nothing."""
    try:
        crowded = crowded_hosts(protocol, provenance.get("processes", []))
        by_host = {node["host"]: _loads([node]) for node in provenance.get("nodes", [])}
        return Evidence(facts(provenance), noise(provenance, record), by_host, oversubscribed=bool(crowded))
    except (AttributeError, KeyError, TypeError, ValueError):  # a hole in it mustn't stop a report
        return Evidence(facts({}), noise({}, record), {}, oversubscribed=False)


def noise(provenance: Mapping[str, Any], record: RunRecord | None = None) -> dict[str, float]:
    """Numbers of one run by their names in ``NOISE``."""
    numbers = _loads(provenance.get("nodes", []))
    workers = [row["wall_s"] for row in provenance.get("speed", [])]
    if times := [wall_s for worker in workers for wall_s in worker]:
        numbers["speed_ms"] = 1000 * statistics.median(times)
        probes = zip(*workers, strict=False)  # a worker may have gone before the last
        numbers["slowest"] = max((max(probe) / statistics.median_low(probe) for probe in probes), default=1.0)
    phases = record.phases if record else {}
    return numbers | {name: phases[name] for name in NOISE if name in phases}


def _loads(nodes: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Means over all that the nodes recorded while the run went on."""
    samples = [sample for node in nodes for sample in node.get("load", ())]  # of a node that was lost there are none
    return {name: statistics.fmean(sample[key] for sample in samples) for name, key in _LOAD.items() if samples}
