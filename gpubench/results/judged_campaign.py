"""Everything that a report of a campaign is made from, as values."""

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.model.plan import Plan
from gpubench.results.merge.environment_changes import Changes
from gpubench.results.merge.evidence import Evidence
from gpubench.results.results import Results
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict
from gpubench.store.accounting import Accounting, RunResult


@dataclasses.dataclass(frozen=True)
class JudgedCampaign:
    """A campaign in its current state with its verdicts, and what a page shows beside them.

    Args:
        results: every cell of every planned run.
        accounting: what became of every run.
        verdicts: of the whole family, made with ``settings``.
        changes: differences within blocks, planned or not, for each verdict.
        evidence: what every run that has a directory proves, by run.
        manifests: by hash.
        target: what a user types for the campaign.
    """

    results: Results
    accounting: Accounting
    verdicts: Sequence[Verdict]
    settings: VerdictSettings
    changes: Changes
    evidence: Mapping[str, Evidence]
    manifests: Mapping[str, Any]
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
