"""What differs between two variants over their blocks, or between two runs.

Facts, what may differ, and why, are those that the verdicts rest on (``facts``, ``environment``).

How disturbed a run was, and how long it took to start: numbers from its provenance and its record. Pure.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from gpubench.images.manifests import differences
from gpubench.merge.environment import Change, Facts, PlannedEnvironment, Why, changes_between, facts, worst
from gpubench.node.spec import RunRecord
from gpubench.stats.paired_difference import PairedDifference, paired_difference
from gpubench.store.accounting import RunResult


@dataclasses.dataclass(frozen=True)
class FieldDifference:
    """A field that differs.

    Args:
        field: ``kernel``, ``environment.UCX_TLS``, ``image.ucx.version``, ``plan.protocol``.
        before, after: in words, every value that was seen on that side.
        why: ``planned known allowed``, or empty: asked for by nobody.
        blocks: in which it was recorded on both sides; 0 for what isn't recorded by run (plans, manifests).
        differ: blocks in which the two sides differed.
        values: different values that were seen, on both sides together; a field with a value of its own in every run
            (a time, a process id) says nothing of the variants.
    """

    field: str
    before: str
    after: str
    why: Why
    blocks: int = 0
    differ: int = 0
    values: int = 2


@dataclasses.dataclass(frozen=True)
class Explained:
    """All differences, those in the most blocks with the fewest values first.

    ``noise`` is that of both sides by its name in ``NOISE``. ``drifting`` are fields that changed between blocks but
    within none: no difference of the variants.
    """

    differences: Sequence[FieldDifference]
    noise: Mapping[str, PairedDifference]
    blocks: int
    drifting: Sequence[str] = ()

    def planned(self) -> list[FieldDifference]:
        """Differences that were asked for."""
        return [one for one in self.differences if one.why == "planned"]

    def others(self) -> list[FieldDifference]:
        """Differences that variants and images didn't ask for."""
        return [one for one in self.differences if one.why != "planned"]


def explain(
    pairs: Sequence[tuple[RunResult, RunResult]],
    baseline: str,
    candidate: str,
    expected: PlannedEnvironment,
    documents: Sequence[Any],
) -> Explained:
    """Compare the two runs of every block.

    Args:
        pairs: baseline's and candidate's run of each block; one pair for two runs by themselves.
        baseline, candidate: variants of ``expected.plan``.
        documents: what was planned for the two sides, as plain data (manifest, plan): what differs in it is planned.
    """
    provenance = [(one.provenance, other.provenance) for one, other in pairs]
    read = [(facts(one), facts(other)) for one, other in provenance]
    changes = [list(changes_between(baseline, candidate, *sides, expected)) for sides in read]
    found = [_over_blocks(change, read, changes) for change in worst(change for block in changes for change in block)]
    found += [
        FieldDifference(path, plain(one), plain(other), "planned") for path, one, other in differences(*documents)
    ]
    found.sort(key=lambda one: (-(one.differ / one.blocks if one.blocks else 1.0), one.values, one.field))
    numbers = [
        (noise(left, one.record), noise(right, other.record))
        for (left, right), (one, other) in zip(provenance, pairs, strict=True)
    ]
    by_name = {
        name: paired_difference([(one[name], other[name]) for one, other in numbers if name in one and name in other])
        for name in NOISE
    }
    known = {one.field for one in found}
    runs = [one for pair in read for one in pair]
    drifting = [
        field
        for field in sorted({field for one in runs for field in one.values} - known)
        if len({one.words(field) for one in runs if one.knows(field)}) > 1
    ]
    return Explained(found, {name: each for name, each in by_name.items() if each is not None}, len(pairs), drifting)


def _over_blocks(
    change: Change, read: Sequence[tuple[Facts, Facts]], changes: Sequence[Sequence[Change]]
) -> FieldDifference:
    field = change.field
    known = [(one.words(field), other.words(field)) for one, other in read if one.knows(field) and other.knows(field)]
    differ = sum(field in {one.field for one in block} for block in changes)
    if len(read) == 1:
        return FieldDifference(field, change.before, change.after, change.why, 1, differ)
    before, after = (" or ".join(sorted({pair[side] for pair in known})) for side in (0, 1))
    if before == after:  # who had which value went to and fro: only hosts tell
        before, after = change.before, change.after
    values = len({value for pair in known for value in pair})
    return FieldDifference(field, before, after, change.why, len(known), differ, values)


def plain(value: Any) -> str:
    """A value of a plan or a manifest in words."""
    if isinstance(value, list):
        return ", ".join(map(plain, value))
    return "absent" if value is None else str(value)


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
