"""What differed between baseline and candidate of a block, and which of it was planned. Pure.

Runs are compared within a block only: blocks may run on other nodes, on another day, and that is no difference between
variants. What a provenance doesn't hold isn't compared.
"""

import dataclasses
import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Literal

from gpubench.images.compatibility import set_by_binding
from gpubench.images.manifests import differences
from gpubench.model.plan import Plan
from gpubench.node.spec import PROCESS_DEFAULTS
from gpubench.results.merge.provenance import ENVIRONMENT, UNSET, ProvenanceFacts, said, word
from gpubench.stats.data import BlockId, ComparisonInput

Why = Literal["planned", "known", "allowed", ""]
_OF_MANIFESTS = ("python", "versions.")
_DISTRIBUTIONS = {"ucp": "ucx-py"}
"""Packages that aren't named like what they import."""
_WORST_LAST: tuple[Why, ...] = ("planned", "known", "allowed", "")


@dataclasses.dataclass(frozen=True)
class Change:
    """A field in which the runs of both variants of one block differed.

    Args:
        field: ``kernel``, ``network.eth0.mtu``, ``environment.UCX_TLS``: what ``--allow`` takes.
        before: the baseline's value, in words.
        why: ``planned`` by variants or images, ``known`` to be set by the binding, ``allowed`` by the user. Empty:
            asked for by nobody, so times can't tell its effect from the variant's.
    """

    field: str
    before: str
    after: str
    why: Why


@dataclasses.dataclass(frozen=True)
class Changes:
    """All changes of a family.

    Args:
        by_comparison: by field, each field once; planned changes are among them.
        values: by changed field: what the runs of each side said, in the order of the sides.
    """

    by_comparison: Sequence[tuple[Change, ...]] = ()
    values: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)

    def by_field(self) -> list[Change]:
        """Every changed field once, with the least reason that a comparison has for it."""
        return worst(change for changes in self.by_comparison for change in changes)


@dataclasses.dataclass(frozen=True)
class PlannedSide:
    """What was planned for the processes of a variant.

    ``by_binding`` are variables that the binding sets on its own at that version of UCX; ``manifest`` is the image's.
    """

    variables: Mapping[str, str]
    by_binding: Mapping[str, str]
    manifest: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class PlannedEnvironment:
    """What may differ between the sides, by their labels.

    ``allow`` are patterns of fields, as the shell would match them (``network.*``).
    """

    sides: Mapping[str, PlannedSide]
    allow: Sequence[str] = ()

    def why(self, baseline: str, candidate: str, field: str, before: str, after: str) -> Why:
        """Why ``field`` may differ between the two variants; empty where it may not."""
        sides = ((self.sides[baseline], before), (self.sides[candidate], after))
        if field.startswith(ENVIRONMENT):
            name = field.removeprefix(ENVIRONMENT)
            planned = [value == word(side.variables.get(name, UNSET)) for side, value in sides]
            by_binding = [value == side.by_binding.get(name) for side, value in sides]
            if all(planned):
                return "planned"
            if all(map(any, zip(planned, by_binding, strict=True))):
                return "known"
            # Where one side alone names it, the other has what its libraries set by themselves, as ucxx does with
            # UCX_RNDV_THRESH: the default that a setting is compared with.
            named = [fits for (side, _), fits in zip(sides, planned, strict=True) if name in side.variables]
            if named and all(named):
                return "planned"
        elif field.startswith(_OF_MANIFESTS):
            manifests = [side.manifest for side, _ in sides]
            if all(manifests) and any(_is_about(path, field) for path, _, _ in differences(*manifests)):
                return "planned"
        return "allowed" if any(fnmatch.fnmatchcase(field, pattern) for pattern in self.allow) else ""


def planned_environment(plan: Plan, manifests: Mapping[str, Any], allow: Sequence[str] = ()) -> PlannedEnvironment:
    """What may differ between the variants of a plan, and ``allow`` besides; manifests are by hash."""
    sides = {}
    for variant in plan.variants:
        image = variant.image
        manifest = manifests.get(image.manifest, {}) if image else {}
        stack = manifest.get("stack", {}).get("name", "")
        variables = {**PROCESS_DEFAULTS, **(image.env if image else {}), **plan.site.env, **variant.env}
        by_binding = set_by_binding(stack, image.ucx_version) if image else {}
        sides[variant.label] = PlannedSide(variables, by_binding, manifest)
    return PlannedEnvironment(sides, (*plan.site.defaults.allow_changed, *allow))


def find_changes(
    comparisons: Sequence[ComparisonInput], seen: Mapping[str, ProvenanceFacts], expected: PlannedEnvironment
) -> Changes:
    """What changed with the variant in each comparison.

    Args:
        comparisons: with all their runs; only complete pairs of blocks that count are looked at.
        seen: by run; what was not recorded has not changed.
    """
    pairs: dict[tuple[str, str], list[Change]] = {}
    by_comparison: list[tuple[Change, ...]] = []
    for comparison in comparisons:
        complete = _complete_pairs(comparison)
        for pair in complete:
            if pair not in pairs:
                sides = (seen.get(pair[0]), seen.get(pair[1]))
                pairs[pair] = list(changes_between(comparison.baseline, comparison.candidate, *sides, expected))
        by_comparison.append(tuple(worst(change for pair in complete for change in pairs[pair])))
    fields = sorted({change.field for changes in by_comparison for change in changes})
    runs: dict[str, list[ProvenanceFacts]] = {label: [] for label in expected.sides}
    for variant, run in {(run.variant, run.run) for comparison in comparisons for run in comparison.runs if run.times}:
        runs[variant] += [seen[run]] if run in seen else []
    values = {field: [said(field, of_variant) for of_variant in runs.values()] for field in fields}
    return Changes(by_comparison, values)


def worst(changes: Iterable[Change]) -> list[Change]:
    """One change per field, sorted by field: the first of those with the least reason."""
    kept: dict[str, Change] = {}
    for change in changes:
        least = kept.setdefault(change.field, change)
        if _WORST_LAST.index(change.why) > _WORST_LAST.index(least.why):
            kept[change.field] = change
    return [kept[field] for field in sorted(kept)]


def with_changes(comparisons: Sequence[ComparisonInput], changes: Changes) -> list[ComparisonInput]:
    """The same comparisons, each with what changed unasked."""
    return [
        dataclasses.replace(
            comparison,
            changed={item.field: f"{item.before} → {item.after}" for item in comparison_changes if not item.why},
        )
        for comparison, comparison_changes in zip(comparisons, changes.by_comparison, strict=True)
    ]


def with_oversubscription(comparisons: Sequence[ComparisonInput], crowded: Set[str]) -> list[ComparisonInput]:
    """The same comparisons, each with whether one of its runs is among the ``crowded``."""
    return [
        dataclasses.replace(comparison, oversubscribed=any(run.run in crowded for run in comparison.runs))
        for comparison in comparisons
    ]


def _complete_pairs(comparison: ComparisonInput) -> list[tuple[str, str]]:
    sides: dict[str, dict[BlockId, str]] = {comparison.baseline: {}, comparison.candidate: {}}
    for run in comparison.runs:
        if run.times and run.variant in sides and (block := run.block_id) is not None:
            sides[run.variant][block] = run.run
    before, after = sides.values()
    return [(before[block], after[block]) for block in sorted(before.keys() & after.keys())]


def changes_between(
    baseline: str,
    candidate: str,
    before: ProvenanceFacts | None,
    after: ProvenanceFacts | None,
    expected: PlannedEnvironment,
) -> Iterable[Change]:
    """Every field in which two runs differ, sorted by name; none where one of them left no provenance."""
    if before is None or after is None:
        return
    for field in sorted(before.differing(after)):
        texts = before.text(field), after.text(field)
        if texts[0] == texts[1]:
            texts = before.text(field, hosts=True), after.text(field, hosts=True)
        yield Change(field, *texts, expected.why(baseline, candidate, field, *texts))


def _is_about(path: str, field: str) -> bool:
    """Whether ``path`` of the manifests is what a process says as ``field``; wheels may be named after their CUDA."""
    if field == "python":
        return path == "stack.python"
    library = field.removeprefix("versions.")
    wheel = re.escape(_DISTRIBUTIONS.get(library, library.replace("_", "-")))
    return re.fullmatch(rf"stack\.packages\.{wheel}(-cu(da)?\d+x?)?", path) is not None
