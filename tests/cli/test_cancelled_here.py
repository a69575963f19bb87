"""``gpubench cancel`` of jobs that this machine runs one after the other: the front end is their queue."""

import threading
from pathlib import Path

import pytest

from gpubench.campaign import local_jobs
from gpubench.campaign.ending import cancel_jobs
from gpubench.campaign.local_jobs import run_jobs
from gpubench.errors import InterruptedByUserError
from gpubench.model.plan import numbers_of_blocks
from gpubench.store.states import job_states
from tests.cli.campaigns import until
from tests.store.campaign_builder import begin, make_plan


def test_no_job_follows_one_that_was_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(local_jobs, "planned_images", lambda _campaign: [])
    campaign = begin(tmp_path / "c", make_plan(blocks=1, nodes=(1, 2)))
    first, second = (campaign.job_dir(job.job) for job in campaign.jobs)
    for directory, script in ((first, "trap 'kill $!; exit 130' TERM\nsleep 60 &\nwait\n"), (second, "touch began\n")):
        directory.mkdir(parents=True)
        (directory / "job.sh").write_text(script)

    def cancel() -> None:
        until(lambda: job_states(campaign)[first.name].alive, "the first job")
        cancel_jobs(campaign)

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    try:
        with pytest.raises(InterruptedByUserError, match=f"job {first.name} was ended by a signal"):
            run_jobs(campaign, numbers_of_blocks(campaign.jobs))
    finally:
        cancelling.join()
    assert not (second / "began").exists()
