"""What differs between two variants over their blocks, or between two runs.

Facts, what may differ, and why, are those that the verdicts rest on (``environment_changes``). Pure.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.images.manifests import differences
from gpubench.results.merge.environment_changes import Change, PlannedEnvironment, changes_between, worst
from gpubench.results.merge.evidence import NOISE, Evidence
from gpubench.results.merge.provenance import ProvenanceFacts
from gpubench.stats.paired_difference import PairedDifference, paired_difference


@dataclasses.dataclass(frozen=True)
class FieldDifference(Change):
    """A change over all blocks: ``before`` and ``after`` are every value that was seen on that side.

    ``field`` may also be one of what was planned: ``image.ucx.version``, ``plan.protocol``.

    Args:
        blocks: in which it was recorded on both sides; 0 for what isn't recorded by run (plans, manifests).
        differ: blocks in which the two sides differed.
        values: different values that were seen, on both sides together; a field with a value of its own in every run
            (a time, a process id) says nothing of the variants.
    """

    blocks: int = 0
    differ: int = 0
    values: int = 2


@dataclasses.dataclass(frozen=True)
class Explained:
    """All differences, those in the most blocks with the fewest values first.

    ``noise`` is that of both sides by its name in ``NOISE``.
    """

    differences: Sequence[FieldDifference]
    noise: Mapping[str, PairedDifference]
    blocks: int


def planned_values(documents: Sequence[Any]) -> dict[str, list[str]]:
    """Every path in which plain documents differ from the first, with the value of each in words, sorted by path."""
    of_each = [{path: (first, value) for path, first, value in differences(documents[0], each)} for each in documents]
    first = {path: value for changed in of_each for path, (value, _) in changed.items()}
    return {
        path: [plain(changed[path][1] if path in changed else first[path]) for changed in of_each]
        for path in sorted(first)
    }


def explain(
    pairs: Sequence[tuple[Evidence, Evidence]],
    sides: tuple[str, str],
    expected: PlannedEnvironment,
    documents: Sequence[Any],
) -> Explained:
    """Compare the two runs of every block.

    Args:
        pairs: both sides' run of each block; one pair for two runs by themselves.
        sides: labels in ``expected``.
        documents: what was planned for the two sides, as plain data (manifest, plan): what differs in it is planned.
    """
    read = [(before.facts, after.facts) for before, after in pairs]
    changes = [list(changes_between(*sides, *both, expected)) for both in read]
    explained = [
        _over_blocks(change, read, changes) for change in worst(change for block in changes for change in block)
    ]
    explained += [
        FieldDifference(path, before, after, "planned") for path, (before, after) in planned_values(documents).items()
    ]
    explained.sort(
        key=lambda difference: (
            -(difference.differ / difference.blocks if difference.blocks else 1.0),
            difference.values,
            difference.field,
        )
    )
    noise = {
        name: paired_difference(
            [
                (before.noise[name], after.noise[name])
                for before, after in pairs
                if name in before.noise and name in after.noise
            ]
        )
        for name in NOISE
    }
    return Explained(
        explained, {name: difference for name, difference in noise.items() if difference is not None}, len(pairs)
    )


def _over_blocks(
    change: Change, read: Sequence[tuple[ProvenanceFacts, ProvenanceFacts]], changes: Sequence[Sequence[Change]]
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
