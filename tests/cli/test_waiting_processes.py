"""Processes that wait for messages: asleep where the profile says so, and told where they poll on too few cores."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from gpubench.node.spec.waiting import ASLEEP
from tests.cli.campaigns import campaign_in, records, words, write_suite
from tests.cli.test_standing_cluster import START, Standing, mine
from tests.conftest import Run

__all__ = ["mine"]
pytestmark = pytest.mark.system
EVENT = ("--set", "layout.waiting=event")
POLLING = ("--set", "layout.waiting=default")
LOOKED_S = 3.0


def runnable_s(pid: int) -> dict[str, float]:
    """Seconds in which each thread of a process ran or waited for a core: one that polls never does anything else.

    Not their sum: on a busy machine many threads that wake up for a moment wait for a core, too.
    """
    found = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        ran, waited, _ = (thread / "schedstat").read_text().split()
        found[thread.name] = (int(ran) + int(waited)) / 1e9
    return found


@pytest.mark.long
def test_with_event_a_cluster_that_has_nothing_to_do_leaves_its_cores_alone(mine: Standing) -> None:
    mine("start", *START, *EVENT)
    roles = [pid for pid, line in mine.processes().items() if line.startswith(("dask scheduler", "dask worker"))]
    before = {pid: runnable_s(pid) for pid in roles}
    time.sleep(LOOKED_S)  # what is looked at, not a wait for anything
    used = {
        pid: max(after - before[pid].get(thread, after) for thread, after in runnable_s(pid).items()) for pid in roles
    }
    assert len(used) == 2
    assert max(used.values()) < 0.8 * LOOKED_S, used


def test_every_process_of_a_run_has_what_event_sets_and_none_is_said_to_poll(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench(*words(write_suite(tmp_path), *EVENT, "--blocks", "1", protocol="ucx"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "oversubscribed" not in done.stdout + done.stderr
    campaign = campaign_in(tmp_path)
    for name, record in records(campaign).items():
        assert (record["status"], record["warnings"]) == ("ok", [])
        processes = json.loads((campaign / "runs" / name / "provenance.json").read_text())["processes"]
        assert {one["role"] for one in processes} == {"scheduler", "worker", "client"}
        assert all(ASLEEP.items() <= one["ucx"]["env_at_start"].items() for one in processes)


def test_more_processes_that_poll_than_cores_are_said_by_plan_status_and_verdicts(
    gpubench: Run, tmp_path: Path
) -> None:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        done = gpubench(*words(write_suite(tmp_path), *POLLING, "--blocks", "1", protocol="ucx"))
    finally:
        os.sched_setaffinity(0, cores)
    assert done.returncode == 0, done.stdout + done.stderr
    line = "oversubscribed: 3 processes poll while they wait, on 1 core"
    assert line in done.stdout
    campaign = campaign_in(tmp_path)
    assert line in gpubench("status", campaign).stdout
    verdicts = json.loads((campaign / "verdicts.json").read_text())["cells"]
    assert [one["flags"].count("oversubscribed") for one in verdicts] == [1]
