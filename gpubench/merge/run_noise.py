"""How disturbed a run was, and how long it took to start: numbers from its provenance and its record. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from gpubench.spec import RunRecord

NOISE = {
    "load": "load average, mean",
    "busy": "processors busy, mean %",
    "steal": "stolen by other machines, mean %",
    "speed_ms": "speed probe, median worker, ms",
    "slowest": "slowest worker over median",
    "first_worker": "first worker registered, s",
    "half_workers": "half of them registered, s",
    "all_workers": "all workers registered, s",
}
"""What each number is, in words."""
_LOAD = {"load": "load1", "busy": "busy", "steal": "steal"}


def noise(provenance: Mapping[str, Any], record: RunRecord | None = None) -> dict[str, float]:
    """Numbers of one run by their names in ``NOISE``; what wasn't recorded is left out."""
    nodes = list(entries([provenance], "nodes"))
    found = {name: statistics.fmean(values) for name, key in _LOAD.items() if (values := series(nodes, key))}
    rows = [row["wall_s"] for row in entries([provenance], "speed") if isinstance(row.get("wall_s"), list)]
    probes = [float(wall_s) for row in rows for wall_s in row if _is_time(wall_s)]
    if probes:
        found["speed_ms"] = 1000 * statistics.median(probes)
    worst = slowest([provenance])
    if worst[1]:
        found["slowest"] = worst[0]
    phases = record.phases if record else {}
    return found | {name: float(phases[name]) for name in NOISE if isinstance(phases.get(name), int | float)}


def entries(found: Iterable[Mapping[str, Any]], key: str) -> Iterator[Mapping[str, Any]]:
    """Every object in the lists at ``key``."""
    for one in found:
        listed = one.get(key)
        if isinstance(listed, list):
            yield from (listed if set(map(type, listed)) == {dict} else filter(_is_object, listed))


def series(nodes: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    """What the nodes recorded of ``load1``, ``busy`` or ``steal`` while the run went on, joined."""
    values = [entry.get(name) for entry in entries(nodes, "load")]
    if set(map(type, values)) == {float}:  # a second of every run is one: by far the most
        return cast("list[float]", values)
    return [float(value) for value in values if isinstance(value, (float, int))]


def slowest(found: Iterable[Mapping[str, Any]]) -> tuple[float, str]:
    """The worker whose probe took longest beside the median worker of the same probe: how many times, and its name.

    The name is empty where no probe was recorded.
    """
    worst: tuple[float, str] = (0.0, "")
    for one in found:
        rows = [row for row in entries([one], "speed") if isinstance(row.get("wall_s"), list)]
        for times in zip(*(row["wall_s"] for row in rows), strict=False):
            made = [(float(t), str(row.get("name", "?"))) for t, row in zip(times, rows, strict=True) if _is_time(t)]
            median = statistics.median_low(t for t, _ in made) if made else 1.0
            worst = max([worst, *((t / median, name) for t, name in made)])
    return worst


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_time(value: Any) -> bool:
    """Whether it is seconds of a probe that was made: hand-made or damaged provenance may hold anything."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
