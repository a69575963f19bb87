"""Everything that a report is made from, as values.

They include a sentence about the verdict rule's error rate on this site, and both sides of a comparison in seconds.
"""

import dataclasses
import datetime as dt
import functools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.merge.environment import Changes
from gpubench.merge.family import Cell
from gpubench.merge.links import LinkTable
from gpubench.model.plan import Plan
from gpubench.stats.data import SUMMARIES, ComparisonInput
from gpubench.stats.settings import Summary, VerdictSettings
from gpubench.stats.verdict import Verdict
from gpubench.store.accounting import RunOutcome

Seconds = tuple[float, float] | None
"""Baseline and candidate; None where no block has both."""


def seconds(comparisons: Sequence[ComparisonInput], verdicts: Sequence[Verdict], summary: Summary) -> list[Seconds]:
    """Of every verdict: baseline and candidate, in seconds.

    Each is the geometric mean over the blocks that the verdict used of its runs' numbers under the chosen summary, so
    that the second is the first times one plus the effect.
    """
    cells: dict[frozenset[tuple[str, object]], dict[str, dict[int, Sequence[float]]]] = {}
    for one in comparisons:
        sides = cells.setdefault(frozenset(one.key.items()), {})
        for run in one.runs:
            if run.wall_s:
                sides.setdefault(run.variant, {})[run.block] = run.wall_s
    return [_pair(one, cells.get(frozenset(one.key.items()), {}), summary) for one in verdicts]


def _pair(one: Verdict, sides: Mapping[str, Mapping[int, Sequence[float]]], summary: Summary) -> Seconds:
    before, after = sides.get(one.baseline, {}), sides.get(one.candidate, {})
    blocks = sorted(before.keys() & after.keys())
    if not blocks:
        return None
    return _mean([before[block] for block in blocks], summary), _mean([after[block] for block in blocks], summary)


def _mean(runs: Sequence[Sequence[float]], summary: Summary) -> float:
    return statistics.geometric_mean([SUMMARIES[summary](samples) for samples in runs])


@dataclasses.dataclass(frozen=True)
class ReportInputs:
    """Everything that the front end has read and computed.

    ``outcomes`` and ``cells`` are those of the accounting and of ``merge.cells``, in planned order. ``comparisons`` are
    the family that was judged. ``verdicts`` were made with ``settings``. ``links`` are those that the runs recorded.
    ``provenance`` maps a run directory's name to the content of its ``provenance.json`` (keys may be missing),
    ``manifests`` a manifest's hash to the manifest. ``changes`` are the differences within blocks, for each verdict.
    ``warnings`` are lines for the reader, of merge and accounting. ``target`` is what a user types for the campaign:
    its directory, or its name where only a pack is here.
    """

    plan: Plan
    outcomes: Sequence[RunOutcome]
    cells: Sequence[Cell]
    comparisons: Sequence[ComparisonInput]
    verdicts: Sequence[Verdict]
    settings: VerdictSettings
    links: Sequence[LinkTable]
    provenance: Mapping[str, Mapping[str, Any]]
    changes: Changes
    manifests: Mapping[str, Any]
    warnings: Sequence[str]
    generated_at: dt.datetime
    target: str = ""

    @functools.cached_property
    def seconds(self) -> list[Seconds]:
        """Both sides of every verdict."""
        return seconds(self.comparisons, self.verdicts, self.settings.summary)
