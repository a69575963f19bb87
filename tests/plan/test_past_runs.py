"""Which earlier campaign foretells the time and the noise of a plan."""

import datetime as dt
import os
from pathlib import Path

from gpubench.campaign.past_runs import with_history
from gpubench.store.campaign import Campaign
from tests.plan.requests_by_hand import plan, request
from tests.store.campaign_builder import Writer, finish


def begun(outputs: Path, name: str, written_at: float) -> Campaign:
    directory = outputs / name
    campaign = Campaign.begin(directory, plan().model_copy(update={"campaign": name}))
    os.utime(directory / "plan.json", (written_at, written_at))
    return campaign


def test_a_campaign_that_has_only_begun_is_no_better_witness_than_a_whole_one(tmp_path: Path) -> None:
    """Seen: a plan beside a running campaign went by its first 6 runs, though 12 of a finished one were there."""
    finish(begun(tmp_path, "whole", 1e9))
    newest = begun(tmp_path, "newest", 2e9)
    begun(tmp_path, "empty", 3e9)
    assert with_history(request(workers=[2]), tmp_path / "elsewhere").history is None
    writer, rows = Writer(newest), list(newest.rows())
    for row in rows[:2]:
        writer.write(*row)
    history = with_history(request(workers=[2]), tmp_path).history
    assert history is not None
    assert (history.campaign, history.runs) == ("whole", len(rows))
    for row in rows[2:]:
        writer.write(*row)
    history = with_history(request(workers=[2]), tmp_path).history
    assert history is not None
    assert history.campaign == "newest"


def test_clusters_that_start_together_share_the_time_of_their_block(tmp_path: Path) -> None:
    """Seen: six interleaved variants, at 14 s each by their own clocks, took 40 s a block, and a plan said 84 s."""
    directory, planned = tmp_path / "past", plan()
    site = planned.site.with_layout(arrangement="interleaved")
    campaign = Campaign.begin(directory, planned.model_copy(update={"campaign": "past", "site": site}))
    writer, began = Writer(campaign), dt.datetime(2025, 11, 20, 14, 0, tzinfo=dt.UTC)
    for job, block, run in campaign.rows():
        begins = began + dt.timedelta(minutes=block.block)
        ends = begins + dt.timedelta(seconds=24 if run is block.runs[-1] else 23)
        phases = {"waited": 10.0}  # its own time is 13 to 14 s
        writer.write(job, block, run, started_at=begins.isoformat(), ended_at=ends.isoformat(), phases=phases)
    history = with_history(request(workers=[2], site=site), tmp_path).history
    assert history is not None
    assert history.run_s == 24 / len(planned.variants)
