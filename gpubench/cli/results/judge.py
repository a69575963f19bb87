"""From run directories to results, verdicts and the report."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import fnmatch
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpubench import resources
from gpubench.cli.campaign.running import account_now
from gpubench.cli.results.links import tables_of
from gpubench.cli.say import warn
from gpubench.errors import DataError, UsageError
from gpubench.files import write_atomically
from gpubench.images.binding_defaults import set_by_binding
from gpubench.merge.directories import merge_directory
from gpubench.merge.environment import Changes, PlannedEnvironment, find_changes, is_crowded, with_changes, with_crowds
from gpubench.merge.environment_facts import Facts, facts
from gpubench.merge.family import Cell, cells, family
from gpubench.merge.table import Merged, parquet
from gpubench.model.base import nearest
from gpubench.model.plan import Comparison, Plan
from gpubench.report import ReportInputs, verdicts_json
from gpubench.report.calibration import calibration_sentence
from gpubench.report.provenance import condensed
from gpubench.stats.settings import Looks, VerdictSettings
from gpubench.stats.verdict import Verdict, judge
from gpubench.store.accounting import Accounting
from gpubench.store.calibrations import read_calibrations
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import Records, read_provenance


@dataclasses.dataclass(frozen=True)
class JudgedCampaign:
    """A campaign as it stands: what became of every run, the merged samples, and the verdicts.

    ``changes`` are what differed within blocks, planned or not, of each verdict.
    """

    campaign: Campaign
    accounting: Accounting
    merged: Merged
    cells: list[Cell]
    verdicts: list[Verdict]
    changes: Changes
    settings: VerdictSettings
    warnings: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Question:
    """What to ask of a campaign other than what was planned; then the verdicts on disk stay as they are."""

    margin: float | None = None
    baseline: str | None = None
    candidate: str | None = None
    allow: tuple[str, ...] = ()

    @property
    def is_the_planned_one(self) -> bool:
        """Nothing else was asked."""
        return self == Question()


@contextlib.contextmanager
def while_it_stands(campaign: Campaign) -> Iterator[None]:
    """Read the campaign; raises DataError where a file vanishes because its directory is moved or removed meanwhile."""
    try:
        yield
    except FileNotFoundError:
        if campaign.directory.is_dir():
            raise
        raise DataError(
            f"{campaign.place} was moved or removed while it was read", then="name it where it is now"
        ) from None


def judge_campaign(campaign: Campaign, question: Question | None = None) -> JudgedCampaign:
    """Merge what is there, judge the whole family, and write ``results.parquet`` and ``verdicts.json``.

    Args:
        campaign: may still be running, or be a copy. Nothing is written of a pack, nor, with a warning, into a
            campaign that may only be read: a colleague's, say.
        question: another margin or pair of variants than planned, or more that may change with the variant.

    Raises:
        UsageError: a variant that the campaign doesn't have.
        DataError: its directory was moved or removed meanwhile.
        MissingToolError: likewise, or the disk is full.
    """
    with while_it_stands(campaign):
        return _judge_campaign(campaign, question)


def _judge_campaign(campaign: Campaign, question: Question | None) -> JudgedCampaign:
    question = _less_what_is_planned(question or Question(), campaign.plan)
    records = Records()
    accounting = account_now(campaign, records)
    merged = merge_directory(campaign.runs_dir, records)
    warnings = (*accounting.warnings, *(str(error) for error in merged.errors), *merged.warnings)
    for warning in warnings:
        warn(warning)
    plan = campaign.plan.model_copy(update={"comparisons": _comparisons(campaign.plan, question)})
    table = cells(plan, accounting.outcomes, merged)
    settings = VerdictSettings(
        margin=plan.margin if question.margin is None else question.margin,
        summary=plan.summary,
        seed=plan.seed,
        look=None if plan.max_blocks is None else Looks(plan.max_blocks, ended=campaign.ended),
    )
    comparisons = family(plan, table, campaign.frozen)
    seen, crowded = _seen(accounting, plan.protocol)
    comparisons = with_crowds(comparisons, crowded)
    changes = find_changes(comparisons, seen, expected_of(campaign, question.allow))
    verdicts = judge(with_changes(comparisons, changes), settings)
    _warn_of_patterns_without_use(question.allow, changes)
    judged = JudgedCampaign(campaign, accounting, merged, table, verdicts, changes, settings, warnings)
    if campaign.pack is None and campaign.directory.is_dir() and not os.access(campaign.directory, os.W_OK):
        warn(f"{campaign.results.name} and {campaign.verdicts.name} aren't renewed: {campaign.place} may only be read")
    elif campaign.pack is None:
        write_results(judged)
        if question.is_the_planned_one:
            arrangement = campaign.plan.site.layout.arrangement
            data = verdicts_json(campaign.plan.campaign, verdicts, settings, arrangement)
            write_atomically(campaign.verdicts, data, parents=False)
    return judged


def _seen(accounting: Accounting, protocol: str) -> tuple[dict[str, Facts], set[str]]:
    """What each run's provenance says of its environment, and the runs with more processes that poll than cores."""
    seen, crowded = {}, set()
    for one in accounting.outcomes:
        if one.directory:
            provenance = read_provenance(one.directory)
            seen[one.run.run] = facts(provenance)
            if is_crowded(provenance, protocol):
                crowded.add(one.run.run)
    return seen, crowded


def write_results(judged: JudgedCampaign) -> None:
    """``results.parquet``, into the campaign or beside its pack; raises MissingToolError."""
    write_atomically(judged.campaign.results, parquet(judged.merged), parents=False)


def decided(judged: JudgedCampaign) -> list[Comparison]:
    """Comparisons that need no further block: equivalent, rejected after Holm, or broken."""
    return [
        one
        for one, verdict in zip(judged.campaign.plan.comparisons, judged.verdicts, strict=True)
        if verdict.verdict != "inconclusive"
    ]


def _less_what_is_planned(question: Question, plan: Plan) -> Question:
    planned = plan.site.defaults.allow_changed
    return dataclasses.replace(question, allow=tuple(one for one in question.allow if one not in planned))


def expected_of(campaign: Campaign, allow: tuple[str, ...] = ()) -> PlannedEnvironment:
    """What may differ between the variants of a campaign, and ``allow`` besides."""
    plan, manifests = campaign.plan, campaign.manifests()
    known: dict[str, Mapping[str, str]] = {}
    for variant in plan.variants:
        if variant.image:
            stack = manifests.get(variant.image.manifest, {}).get("stack", {})
            known[variant.label] = set_by_binding(stack.get("name", ""), variant.image.ucx_version)
    return PlannedEnvironment(plan, manifests, known, (*plan.site.defaults.allow_changed, *allow))


def _warn_of_patterns_without_use(patterns: Iterable[str], changes: Changes) -> None:
    for pattern in patterns:
        if not fnmatch.filter(changes.values, pattern):
            warn(f"--allow {pattern}: nothing of that name changed{nearest(pattern, changes.values)}")


def _comparisons(plan: Plan, question: Question) -> list[Comparison]:
    """The planned family, and the pair that is asked for in place of its mirror image or beside it."""
    if question.baseline is None and question.candidate is None:
        return plan.comparisons
    baseline = question.baseline or plan.baseline
    candidates = [question.candidate] if question.candidate else [item.label for item in plan.variants]
    labels = [item.label for item in plan.variants]
    for label in (baseline, *candidates):
        if label not in labels:
            raise UsageError(f"campaign {plan.campaign} has no variant '{label}'{nearest(label, labels)}")
    pairs = [(baseline, candidate) for candidate in candidates if candidate != baseline]
    kept = [one for one in plan.comparisons if {one.baseline, one.candidate} not in [set(pair) for pair in pairs]]
    asked = [
        one.model_copy(update={"baseline": pair[0], "candidate": pair[1]})
        for pair in pairs
        for one in plan.comparisons
        if one.candidate == plan.comparisons[0].candidate
    ]
    return [*asked, *kept]


def report_inputs(judged: JudgedCampaign) -> ReportInputs:
    """What the report is made from, read from the campaign's directory; raises DataError where that is gone."""
    campaign = judged.campaign
    with while_it_stands(campaign):
        return _report_inputs(judged, campaign)


def _report_inputs(judged: JudgedCampaign, campaign: Campaign) -> ReportInputs:
    return ReportInputs(
        plan=campaign.plan,
        outcomes=judged.accounting.outcomes,
        cells=judged.cells,
        verdicts=judged.verdicts,
        settings=judged.settings,
        links=tables_of(campaign, judged.accounting.outcomes),
        provenance=_provenance(judged),
        changes=judged.changes,
        manifests=campaign.manifests(),
        warnings=judged.warnings,
        generated_at=dt.datetime.now(dt.UTC),
        templates=resources.texts("templates"),
        calibration=calibration_sentence(read_calibrations(campaign.plan.site.name)),
        target=campaign.plan.campaign if campaign.pack else str(campaign.directory),
    )


def _provenance(judged: JudgedCampaign) -> dict[str, Mapping[str, Any]]:
    directories = [outcome.directory for outcome in judged.accounting.outcomes if outcome.directory]
    return {directory.name: condensed(read_provenance(directory)) for directory in directories}
