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
from gpubench.node.spec import RunRecord
from gpubench.results.merge.environment import Change, Facts, PlannedEnvironment, Why, changes_between, facts, worst
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
        return [difference for difference in self.differences if difference.why == "planned"]

    def others(self) -> list[FieldDifference]:
        """Differences that variants and images didn't ask for."""
        return [difference for difference in self.differences if difference.why != "planned"]


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
    provenance = [(before.provenance, after.provenance) for before, after in pairs]
    read = [(facts(before), facts(after)) for before, after in provenance]
    changes = [list(changes_between(baseline, candidate, *sides, expected)) for sides in read]
    explained = [
        _over_blocks(change, read, changes) for change in worst(change for block in changes for change in block)
    ]
    explained += [
        FieldDifference(path, plain(before), plain(after), "planned") for path, before, after in differences(*documents)
    ]
    explained.sort(
        key=lambda difference: (
            -(difference.differ / difference.blocks if difference.blocks else 1.0),
            difference.values,
            difference.field,
        )
    )
    numbers = [
        (noise(left, before.record), noise(right, after.record))
        for (left, right), (before, after) in zip(provenance, pairs, strict=True)
    ]
    by_name = {
        name: paired_difference(
            [(before[name], after[name]) for before, after in numbers if name in before and name in after]
        )
        for name in NOISE
    }
    compared = {difference.field for difference in explained}
    runs = [run for pair in read for run in pair]
    drifting = [
        field
        for field in sorted({field for run in runs for field in run.values} - compared)
        if len({run.text(field) for run in runs if run.knows(field)}) > 1
    ]
    return Explained(
        explained,
        {name: difference for name, difference in by_name.items() if difference is not None},
        len(pairs),
        drifting,
    )


def _over_blocks(
    change: Change, read: Sequence[tuple[Facts, Facts]], changes: Sequence[Sequence[Change]]
) -> FieldDifference:
    field = change.field
    texts = [tuple(side.text(field) for side in sides) for sides in read if all(side.knows(field) for side in sides)]
    differ = sum(field in {change.field for change in block} for block in changes)
    if len(read) == 1:
        return FieldDifference(field, change.before, change.after, change.why, 1, differ)
    before, after = (" or ".join(sorted({pair[side] for pair in texts})) for side in (0, 1))
    if before == after:  # who had which value went to and fro: only hosts tell
        before, after = change.before, change.after
    values = len({value for pair in texts for value in pair})
    return FieldDifference(field, before, after, change.why, len(texts), differ, values)


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
    numbers = {name: statistics.fmean(values) for name, key in _LOAD.items() if (values := series(nodes, key))}
    rows = [row["wall_s"] for row in entries([provenance], "speed") if isinstance(row.get("wall_s"), list)]
    probes = [float(wall_s) for row in rows for wall_s in row if _is_time(wall_s)]
    if probes:
        numbers["speed_ms"] = 1000 * statistics.median(probes)
    worst = slowest([provenance])
    if worst[1]:
        numbers["slowest"] = worst[0]
    phases = record.phases if record else {}
    return numbers | {name: float(phases[name]) for name in NOISE if isinstance(phases.get(name), int | float)}


def entries(records: Iterable[Mapping[str, Any]], key: str) -> Iterator[Mapping[str, Any]]:
    """Every object in the lists at ``key``."""
    for record in records:
        listed = record.get(key)
        if isinstance(listed, list):
            yield from (
                listed if set(map(type, listed)) == {dict} else (item for item in listed if isinstance(item, dict))
            )


def series(nodes: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    """What the nodes recorded of ``load1``, ``busy`` or ``steal`` while the run went on, joined."""
    values = [entry.get(name) for entry in entries(nodes, "load")]
    if set(map(type, values)) == {float}:  # a second of every run is one: by far the most
        return cast("list[float]", values)
    return [float(value) for value in values if isinstance(value, (float, int))]


def slowest(records: Iterable[Mapping[str, Any]]) -> tuple[float, str]:
    """The worker whose probe took longest beside the median worker of the same probe: how many times, and its name.

    The name is empty where no probe was recorded.
    """
    worst: tuple[float, str] = (0.0, "")
    for record in records:
        rows = [row for row in entries([record], "speed") if isinstance(row.get("wall_s"), list)]
        for times in zip(*(row["wall_s"] for row in rows), strict=False):
            made = [(float(t), str(row.get("name", "?"))) for t, row in zip(times, rows, strict=True) if _is_time(t)]
            median = statistics.median_low(t for t, _ in made) if made else 1.0
            worst = max([worst, *((t / median, name) for t, name in made)])
    return worst


def _is_time(value: Any) -> bool:
    """Whether it is seconds of a probe that was made: hand-made or damaged provenance may hold anything."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
