"""What `status` says of jobs, and what is to be done about a campaign that isn't complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.cli.steps.showing import job_lines, require_complete
from gpubench.errors import IncompleteError
from gpubench.schedulers import JobState, submitted
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from tests.store.campaign_builder import Writer, begin, finish, make_plan


def way_on(campaign: Campaign, running: bool = False, **known: object) -> str:
    with pytest.raises(IncompleteError) as caught:
        require_complete(campaign, account(campaign, **known), running=running)  # type: ignore[arg-type]
    return str(caught.value).partition("; ")[2].partition("; ")[2]


def test_runs_of_submitted_jobs_are_waited_for_and_others_are_run(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=1))
    (job,) = (job.job for job in campaign.jobs)
    repair = f"make bench CAMPAIGN={campaign.directory}"
    watch = f"jobs still wait or run: gpubench status --watch {campaign.directory}"
    assert way_on(campaign, alive={job}) == f"to run what is missing: {repair}"
    campaign.job_dir(job).mkdir(parents=True)
    submitted.write(campaign.job_dir(job), "slurm", "c-j001", "12")
    assert way_on(campaign, alive={job}) == watch
    assert way_on(campaign, ends={job: "NODE_FAIL"}) == f"to run what is missing: {repair}"
    Writer(campaign).write(*next(campaign.rows()), status="skipped", reason="no time left")
    assert way_on(campaign, alive={job}) == f"{watch}; when they have ended: {repair}"


def test_a_campaign_that_runs_on_this_machine_is_waited_for_not_started_once_more(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=1))
    (job,) = (job.job for job in campaign.jobs)
    watch = f"jobs still wait or run: gpubench status --watch {campaign.directory}"
    assert way_on(campaign, alive={job}, running=True) == watch
    assert way_on(campaign, alive={job}) == f"to run what is missing: make bench CAMPAIGN={campaign.directory}"


def test_a_job_that_failed_is_told_so_also_when_every_record_of_its_runs_is_well(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=1))
    (job,) = (job.job for job in campaign.jobs)
    failed = {job: JobState("ended", "FAILED", "NonZeroExitCode", 1, "12", "n1")}
    said = f"job {job} (12): FAILED, exit code 1: NonZeroExitCode on n1"
    assert list(job_lines(campaign, failed, account(campaign))) == [said]
    finish(campaign)
    assert list(job_lines(campaign, failed, account(campaign))) == [f"{said}, though every run of it has ended"]
    well = {job: JobState("ended", "COMPLETED", "", 0, "12", "n1")}
    assert list(job_lines(campaign, well, account(campaign))) == []
