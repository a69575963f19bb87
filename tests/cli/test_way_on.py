"""What `status` says is to be done about a campaign that isn't complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.cli.steps.showing import require_complete
from gpubench.errors import IncompleteError
from gpubench.schedulers import submitted
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from tests.store.campaign_builder import Writer, begin, make_plan


def way_on(campaign: Campaign, **known: object) -> str:
    with pytest.raises(IncompleteError) as caught:
        require_complete(campaign, account(campaign, **known))  # type: ignore[arg-type]
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
