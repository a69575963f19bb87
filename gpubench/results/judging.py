"""From run directories to results and verdicts."""

import contextlib
import dataclasses
import datetime as dt
import fnmatch
import logging
import os
from collections.abc import Iterator

from gpubench.errors import DataError
from gpubench.files import write_atomically
from gpubench.model.base import nearest
from gpubench.results.campaigns import campaign_results
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.results.merge.environment_changes import (
    find_changes,
    planned_environment,
    with_changes,
    with_oversubscription,
)
from gpubench.results.merge.evidence import evidence
from gpubench.results.merge.table import parquet, sample_table
from gpubench.results.results import judge
from gpubench.results.verdicts_file import verdicts_json
from gpubench.stats.question import Question
from gpubench.store.campaign import Campaign
from gpubench.store.states import account_now

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def reading_campaign(campaign: Campaign) -> Iterator[None]:
    """Read the campaign; raises DataError where a file vanishes because its directory is moved or removed meanwhile."""
    try:
        yield
    except FileNotFoundError:
        if campaign.directory.is_dir():
            raise
        raise DataError(
            f"{campaign.directory} was moved or removed while it was read", then="name it where it is now"
        ) from None


def judge_campaign(campaign: Campaign, question: Question | None = None) -> JudgedCampaign:
    """Merge what is there, judge the whole family, and write ``results.parquet`` and ``verdicts.json``.

    Args:
        campaign: may still be running, or be a copy. Nothing is written, with a warning, into one that
            is read-only, for example a colleague's.
        question: another margin or pair of variants than planned, or more that may change with the variant.

    Raises:
        UsageError: a variant that the campaign doesn't have.
        DataError: its directory was moved or removed meanwhile.
        MissingToolError: likewise, or the disk is full.
    """
    with reading_campaign(campaign):
        return _judge_campaign(campaign, question or Question())


def _judge_campaign(campaign: Campaign, question: Question) -> JudgedCampaign:
    plan, planned = campaign.plan, campaign.plan.site.defaults.allow_changed
    question = dataclasses.replace(
        question, allow=tuple(pattern for pattern in question.allow if pattern not in planned)
    )
    accounting = account_now(campaign)
    samples = sample_table(accounting.outcomes)
    for warning in accounting.warnings:
        _log.warning(warning)
    results = campaign_results(campaign, accounting.outcomes, samples)
    settings = question.settings(plan)
    seen = {
        run.run.run: evidence(run.provenance, run.record, plan.protocol) for run in accounting.outcomes if run.directory
    }
    crowded = {run for run, of_run in seen.items() if of_run.oversubscribed}
    comparisons = with_oversubscription(results.family(question), crowded)
    manifests = campaign.manifests()
    expected = planned_environment(plan, manifests, question.allow)
    changes = find_changes(comparisons, {run: of_run.facts for run, of_run in seen.items()}, expected)
    verdicts = judge(with_changes(comparisons, changes), settings)
    for pattern in question.allow:
        if not fnmatch.filter(changes.values, pattern):
            _log.warning(f"--allow {pattern}: nothing of that name changed{nearest(pattern, changes.values)}")
    if campaign.directory.is_dir() and not os.access(campaign.directory, os.W_OK):
        _log.warning(
            f"{campaign.results.name} and {campaign.verdicts.name} aren't updated: {campaign.directory} is read-only"
        )
    else:
        write_atomically(campaign.results, parquet(samples), parents=False)
        if question == Question():
            data = verdicts_json(plan.campaign, verdicts, settings, plan.site.layout.arrangement)
            write_atomically(campaign.verdicts, data, parents=False)
    return JudgedCampaign(
        results=results,
        accounting=accounting,
        verdicts=verdicts,
        settings=settings,
        changes=changes,
        evidence=seen,
        manifests=manifests,
        generated_at=dt.datetime.now(dt.UTC),
        target=str(campaign.directory),
    )
