"""Everything that a report is made from, as values.

They include a sentence about the verdict rule's error rate on this site, and both sides of a comparison in seconds.
"""

import dataclasses
import datetime as dt
import functools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpubench.model.plan import Plan
from gpubench.results.merge.environment_changes import Changes
from gpubench.results.merge.evidence import Evidence
from gpubench.results.results import Results
from gpubench.stats.data import BlockId, ComparisonInput
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.unpaired import UNPAIRED
from gpubench.stats.verdict import Verdict
from gpubench.store.accounting import Accounting, RunResult

Seconds = tuple[float, float] | None
"""Baseline and candidate; None where no block has both."""


def seconds(comparisons: Sequence[ComparisonInput], verdicts: Sequence[Verdict]) -> list[Seconds]:
    """Of every verdict: baseline and candidate, in seconds. ``verdicts`` are those of ``comparisons``, in their order.

    Each is the geometric mean over the blocks that the verdict used (of an unpaired one, all of either side) of its
    runs' means, so that the second is the first times one plus the effect.
    """
    return [_pair(*both) for both in zip(comparisons, verdicts, strict=True)]


def _pair(comparison: ComparisonInput, verdict: Verdict) -> Seconds:
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


@dataclasses.dataclass(frozen=True)
class JudgedCampaign:
    """A campaign in its current state with its verdicts, and what a page shows beside them.

    Args:
        results: every cell of every planned run.
        accounting: what became of every run.
        comparisons: the family that was judged; ``verdicts`` are in its order, and were made with ``settings``.
        changes: differences within blocks, planned or not, for each verdict.
        evidence: what every run that has a directory proves, by run.
        manifests: by hash.
        warnings: lines for the reader, of merge and accounting.
        target: what a user types for the campaign.
    """

    results: Results
    accounting: Accounting
    comparisons: Sequence[ComparisonInput]
    verdicts: Sequence[Verdict]
    settings: VerdictSettings
    changes: Changes
    evidence: Mapping[str, Evidence]
    manifests: Mapping[str, Any]
    warnings: Sequence[str]
    generated_at: dt.datetime
    target: str

    @property
    def plan(self) -> Plan:
        assert self.results.plan is not None
        return self.results.plan

    @property
    def outcomes(self) -> Sequence[RunResult]:
        """Of every run, in planned order."""
        return self.accounting.outcomes

    def evidence_of(self, variant: str) -> list[Evidence]:
        """That of all runs of a variant."""
        runs = [outcome.run.run for outcome in self.outcomes if outcome.run.variant == variant]
        return [self.evidence[run] for run in runs if run in self.evidence]

    @functools.cached_property
    def directories(self) -> dict[str, str]:
        """Names of the runs' directories, by run."""
        return {outcome.run.run: outcome.directory.name for outcome in self.outcomes if outcome.directory}

    @functools.cached_property
    def seconds(self) -> list[Seconds]:
        """Both sides of every verdict."""
        return seconds(self.comparisons, self.verdicts)
