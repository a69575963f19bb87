"""Results: the runs of a campaign, an import, a table or two of them, with the family that is compared. Pure."""

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from gpubench.images.manifests import differences
from gpubench.model.plan import Plan
from gpubench.results.merge.provenance import ProvenanceFacts
from gpubench.stats.data import BlockId, CellRun, ComparisonInput, Key
from gpubench.stats.question import Question
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.unpaired import UNPAIRED, judge_unpaired
from gpubench.stats.verdict import Verdict
from gpubench.stats.verdict import judge as judge_paired


@dataclasses.dataclass(frozen=True)
class RunCircumstances:
    """What is known of how a run came about.

    Args:
        facts: by field, in words.
        provenance: of a campaign's run; its differing fields are told with the care that verdicts take.
        machine: the site, and what its processors are, as parts of a cell's key; empty where nobody recorded them.
    """

    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    provenance: ProvenanceFacts | None = None
    machine: Key = ()

    def changed(self, after: "RunCircumstances") -> list[str]:
        """``field before → after`` of everything that both recorded and that differs."""
        changes = [
            f"{path} {before if before is not None else 'none'} → {now if now is not None else 'none'}"
            for path, before, now in differences(self.facts, after.facts)
        ]
        if self.provenance is not None and after.provenance is not None:
            changes += [
                f"{field} {self.provenance.text(field)} → {after.provenance.text(field)}"
                for field in sorted(self.provenance.differing(after.provenance))
            ]
        return changes


@dataclasses.dataclass(frozen=True)
class Results:
    """Everything that was measured in one place.

    Args:
        kind: what it is called: ``campaign``, ``import``, ``table`` or ``sides``.
        place: where it stands.
        variants: labels, in the order in which they are shown.
        keys: its cells, in the order in which they are shown.
        runs: every cell in every run, also those that did not end ``ok``.
        family: from a question to every comparison that belongs together.
        plan: of a campaign.
        plans: those whose margin counts, where nobody names others.
        about: a line for lists of results.
        caution: what its source can't tell.
        notes: what stands beside every verdict.
        lone: of two sides: cells that only one has, with its letter.
        has_means: some times are means of several repetitions.
        unit: of the figures; of a table it may be another than seconds.
        circumstances: of a run.
    """

    kind: str
    name: str
    place: Path
    variants: Sequence[str]
    keys: Sequence[Key]
    runs: Sequence[CellRun]
    family: Callable[[Question], list[ComparisonInput]]
    plan: Plan | None = None
    plans: Sequence[Plan] = ()
    about: str = ""
    caution: str = ""
    notes: Sequence[str] = ()
    lone: Sequence[tuple[str, Key]] = ()
    has_means: bool = False
    unit: str = "s"
    circumstances: Callable[[CellRun], RunCircumstances] = lambda _run: RunCircumstances()


def judge(comparisons: Sequence[ComparisonInput], settings: VerdictSettings) -> list[Verdict]:
    """Verdicts of a whole family, with seconds: paired by blocks, unpaired where no two sides are from the same place.

    Equal numbers of blocks of two campaigns pair nothing.

    Raises:
        DataError: samples that no verdict can stand on.
    """
    of_times = judge_unpaired if _share_nothing(comparisons) else judge_paired
    return [
        dataclasses.replace(verdict, sides_s=_seconds(comparison, verdict))
        for comparison, verdict in zip(comparisons, of_times(comparisons, settings), strict=True)
    ]


def _seconds(comparison: ComparisonInput, verdict: Verdict) -> tuple[float, float] | None:
    """Each is the geometric mean over the blocks that the verdict used (of an unpaired one, all of either side) of its
    runs' means, so that the second is the first times one plus the effect.
    """
    sides: dict[str, dict[BlockId, list[Sequence[float]]]] = {verdict.baseline: {}, verdict.candidate: {}}
    for run in comparison.runs:
        if run.times and run.block_id and run.variant in sides:
            sides[run.variant].setdefault(run.block_id, []).append(run.times)
    before, after = sides[verdict.baseline], sides[verdict.candidate]
    if UNPAIRED not in verdict.flags:
        both = sorted(before.keys() & after.keys())
        before, after = ({block: side[block] for block in both} for side in (before, after))
    return (_mean(before.values()), _mean(after.values())) if before and after else None


def _mean(blocks: Iterable[Sequence[Sequence[float]]]) -> float:
    """Over the blocks, each the mean over its runs, as the verdict takes them."""
    numbers = [[statistics.fmean(samples) for samples in runs] for runs in blocks]
    return statistics.geometric_mean(map(statistics.geometric_mean, numbers))


def _share_nothing(comparisons: Iterable[ComparisonInput]) -> bool:
    origins = [comparison.origins for comparison in comparisons]
    both = [(baseline, candidate) for baseline, candidate in origins if baseline and candidate]
    return bool(both) and not any(baseline & candidate for baseline, candidate in both)
