"""From run directories to results, verdicts and the report."""

import contextlib
import dataclasses
import datetime as dt
import fnmatch
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gpubench.cli.campaign.running import account_now
from gpubench.cli.say import warn
from gpubench.errors import DataError
from gpubench.files import write_atomically
from gpubench.images.compatibility import set_by_binding
from gpubench.merge.environment import (
    Changes,
    Environments,
    PlannedEnvironment,
    find_changes,
    with_changes,
    with_oversubscription,
)
from gpubench.merge.family import Cell, cells, family
from gpubench.merge.links import LinkTable, RunLinks, link_tables, processes_by_address
from gpubench.merge.table import merge_directory, parquet
from gpubench.model.base import nearest
from gpubench.model.text import counted
from gpubench.report.inputs import ReportInputs
from gpubench.report.provenance import condensed
from gpubench.report.verdicts import verdicts_json
from gpubench.stats.data import ComparisonInput
from gpubench.stats.question import Decision, Question
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict, judge
from gpubench.store.accounting import Accounting, RunOutcome
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import Records, read_links, read_provenance


@dataclasses.dataclass(frozen=True)
class JudgedCampaign:
    """A campaign in its current state: the outcome of every run, the merged samples, and the verdicts.

    ``changes`` are what differed within blocks, planned or not, of each verdict; ``provenance`` is that of runs by
    their directory's name, where a page needs it.
    """

    campaign: Campaign
    accounting: Accounting
    cells: list[Cell]
    comparisons: Sequence[ComparisonInput]
    verdicts: list[Verdict]
    changes: Changes
    settings: VerdictSettings
    warnings: tuple[str, ...]
    provenance: Mapping[str, "RunProvenance"] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class RunProvenance:
    """What a page shows of a run's provenance, and the run's processes by address."""

    shown: Mapping[str, Any]
    processes: Mapping[str, Mapping[str, Any]]

    @staticmethod
    def of(provenance: Mapping[str, Any]) -> "RunProvenance":
        """Those parts of it."""
        return RunProvenance(condensed(provenance), processes_by_address(provenance))


@contextlib.contextmanager
def reading_campaign(campaign: Campaign) -> Iterator[None]:
    """Read the campaign; raises DataError where a file vanishes because its directory is moved or removed meanwhile."""
    try:
        yield
    except FileNotFoundError:
        if campaign.directory.is_dir():
            raise
        raise DataError(
            f"{campaign.place} was moved or removed while it was read", then="name it where it is now"
        ) from None


def judge_campaign(campaign: Campaign, question: Question | None = None, *, for_page: bool = False) -> JudgedCampaign:
    """Merge what is there, judge the whole family, and write ``results.parquet`` and ``verdicts.json``.

    Args:
        campaign: may still be running, or be a copy. Nothing is written of a pack, nor, with a warning, into a
            campaign that is read-only, for example a colleague's.
        question: another margin or pair of variants than planned, or more that may change with the variant.
        for_page: keep what ``report_inputs`` would read once more.

    Raises:
        UsageError: a variant that the campaign doesn't have.
        DataError: its directory was moved or removed meanwhile.
        MissingToolError: likewise, or the disk is full.
    """
    with reading_campaign(campaign), ThreadPoolExecutor(1) as executor:
        return _judge_campaign(campaign, question, executor, for_page=for_page)


def _judge_campaign(
    campaign: Campaign, question: Question | None, executor: ThreadPoolExecutor, *, for_page: bool
) -> JudgedCampaign:
    question, planned = question or Question(), campaign.plan.site.defaults.allow_changed
    question = dataclasses.replace(question, allow=tuple(one for one in question.allow if one not in planned))
    records = Records()
    accounting = account_now(campaign, records)
    merged = merge_directory(campaign.runs_dir, records)
    # Polars needs no Python for the files, which therefore cost no time beside the verdicts.
    table = executor.submit(parquet, merged) if campaign.pack is None else None
    warnings = (*accounting.warnings, *(str(error) for error in merged.errors), *merged.warnings)
    warnings += added_later(campaign)
    for warning in warnings:
        warn(warning)
    decision = Decision.of(campaign.plan, question)
    settings = decision.settings
    measured = cells(campaign.plan, accounting.outcomes, merged)
    plan = campaign.plan.model_copy(update={"comparisons": decision.comparisons})
    comparisons = family(plan, measured)
    environments = Environments(plan.protocol)
    provenance = dict(_read_provenance(accounting.outcomes, environments, for_page=for_page))
    comparisons = with_oversubscription(comparisons, environments.crowded)
    changes = find_changes(comparisons, environments.seen, expected_of(campaign, question.allow))
    verdicts = judge(with_changes(comparisons, changes), settings)
    for pattern in question.allow:
        if not fnmatch.filter(changes.values, pattern):
            warn(f"--allow {pattern}: nothing of that name changed{nearest(pattern, changes.values)}")
    judged = JudgedCampaign(
        campaign, accounting, measured, comparisons, verdicts, changes, settings, warnings, provenance
    )
    if table and campaign.directory.is_dir() and not os.access(campaign.directory, os.W_OK):
        warn(f"{campaign.results.name} and {campaign.verdicts.name} aren't updated: {campaign.place} is read-only")
    elif table:
        write_atomically(campaign.results, table.result(), parents=False)
        if question == Question():
            arrangement = campaign.plan.site.layout.arrangement
            data = verdicts_json(campaign.plan.campaign, verdicts, settings, arrangement)
            write_atomically(campaign.verdicts, data, parents=False)
    return judged


def _read_provenance(
    outcomes: Iterable[RunOutcome], environments: Environments, *, for_page: bool
) -> Iterator[tuple[str, RunProvenance]]:
    """Add each run's to the ``environments``; what a page needs of it by the name of the run's directory."""
    for one in outcomes:
        if one.directory is None:
            continue
        provenance = read_provenance(one.directory)
        environments.add(one.run.run, provenance)
        if for_page:
            yield one.directory.name, RunProvenance.of(provenance)


def added_later(campaign: Campaign) -> tuple[str, ...]:
    """A note on blocks that were added after a look at the results; empty without such blocks.

    The chances of two and three looks at equal distances: Armitage, McPherson and Rowe (1969), J. R. Stat. Soc. A
    132:235, table 2.
    """
    blocks = [block for one in campaign.additions for job in one.jobs for block in job.blocks if block.replaces is None]
    if not blocks:
        return ()
    return (
        f"{counted(len(blocks), 'block')} {'was' if len(blocks) == 1 else 'were'} added after the results had been "
        "looked at: the chance of a false alarm is above "
        "the planned 5 % (about 8 % with two looks, 11 % with three); a new campaign can confirm what it shows",
    )


def expected_of(campaign: Campaign, allow: tuple[str, ...] = ()) -> PlannedEnvironment:
    """What may differ between the variants of a campaign, and ``allow`` besides."""
    plan, manifests = campaign.plan, campaign.manifests()
    known: dict[str, Mapping[str, str]] = {}
    for variant in plan.variants:
        if variant.image:
            stack = manifests.get(variant.image.manifest, {}).get("stack", {})
            known[variant.label] = set_by_binding(stack.get("name", ""), variant.image.ucx_version)
    return PlannedEnvironment(plan, manifests, known, (*plan.site.defaults.allow_changed, *allow))


def tables_of(campaign: Campaign, outcomes: Iterable[RunOutcome]) -> list[LinkTable]:
    """All links of those of the campaign's runs that are ok."""
    return _of_files(campaign, [one for one in outcomes if one.status == "ok"], {})[0]


def _of_files(
    campaign: Campaign, outcomes: Iterable[RunOutcome], known: Mapping[str, RunProvenance]
) -> tuple[list[LinkTable], dict[str, Mapping[str, Any]]]:
    """The links, and what the page shows of each run's provenance; that is read once for both, unless it is known."""
    runs, shown = [], {}
    for one in outcomes:
        if one.directory:
            found = known.get(one.directory.name) or RunProvenance.of(read_provenance(one.directory))
            shown[one.directory.name] = found.shown
            if one.status == "ok" and (rows := read_links(one.directory)):
                runs.append(RunLinks(one, rows, found.processes))
    return link_tables(campaign.plan, runs), shown


def report_inputs(judged: JudgedCampaign) -> ReportInputs:
    """What the report is made from, read from the campaign's directory; raises DataError where that is gone."""
    campaign, outcomes = judged.campaign, judged.accounting.outcomes
    with reading_campaign(campaign):
        links, provenance = _of_files(campaign, outcomes, judged.provenance)
        return ReportInputs(
            plan=campaign.plan,
            outcomes=outcomes,
            cells=judged.cells,
            comparisons=judged.comparisons,
            verdicts=judged.verdicts,
            settings=judged.settings,
            links=links,
            provenance=provenance,
            changes=judged.changes,
            manifests=campaign.manifests(),
            warnings=judged.warnings,
            generated_at=dt.datetime.now(dt.UTC),
            target=campaign.plan.campaign if campaign.pack else str(campaign.directory),
        )
