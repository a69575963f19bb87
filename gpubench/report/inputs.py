"""Everything that a report is made from, as values."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.merge.environment import Changes
from gpubench.merge.family import Cell, family
from gpubench.merge.links import LinkTable
from gpubench.model.plan import Plan
from gpubench.report.calibration import calibration_sentence
from gpubench.report.seconds import Seconds, seconds
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict
from gpubench.store.accounting import RunOutcome


@dataclasses.dataclass(frozen=True)
class ReportInputs:
    """What the front end has read and computed.

    ``outcomes`` and ``cells`` are those of the accounting and of ``merge.cells``, in planned order. ``verdicts`` were
    made with ``settings``. ``links`` are those that the runs recorded. ``provenance`` maps a run directory's name to
    what stands in its ``provenance.json`` (keys may be missing), ``manifests`` a manifest's hash to the manifest.
    ``changes`` are what differed within blocks, for each verdict. ``warnings`` are lines for the reader: of the merge,
    of the accounting. ``calibration`` is a sentence about the gate on this site. ``target`` is what a user types for
    the campaign: its directory, or its name where only a pack is here.
    """

    plan: Plan
    outcomes: Sequence[RunOutcome]
    cells: Sequence[Cell]
    verdicts: Sequence[Verdict]
    settings: VerdictSettings
    links: Sequence[LinkTable]
    provenance: Mapping[str, Mapping[str, Any]]
    changes: Changes
    manifests: Mapping[str, Any]
    warnings: Sequence[str]
    generated_at: dt.datetime
    calibration: str = calibration_sentence({})
    target: str = ""

    @functools.cached_property
    def seconds(self) -> list[Seconds]:
        """Both sides of every verdict."""
        return seconds(family(self.plan, self.cells), self.verdicts, self.settings.summary)
