"""Kill anything at any moment: nothing lost, nothing repeated, no process left behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.campaigns import (
    SIGINT,
    SIGKILL,
    Front,
    cluster_processes,
    nothing_left,
    records,
    running,
    until,
    words,
    write_suite,
)
from tests.conftest import Run

pytestmark = pytest.mark.system


STOPPED = """
import signal, sys
from gpubench.cli import application, entry_point
made = application.application()
@made.command()
def stop():
    try:
        signal.raise_signal(signal.{name})
    finally:
        {clean_up}
application.application = lambda word: made
sys.argv = ["gpubench", "stop"]
entry_point.main()
"""


@pytest.mark.parametrize(
    ("name", "clean_up"),
    [
        ("SIGINT", "pass"),
        ("SIGINT", "raise ValueError('there is an open writing handle')"),
        ("SIGTERM", "pass"),
        ("SIGHUP", "pass"),
    ],
)
def test_what_is_interrupted_where_nothing_runs_yet_cleans_up_and_has_its_exit_code(name: str, clean_up: str) -> None:
    """As when a terminal closes, or ``timeout`` ends it, while ``cluster start`` waits for this machine."""
    words = [sys.executable, "-c", STOPPED.format(name=name, clean_up=clean_up)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "gpubench: interrupted\n")


def test_after_ctrl_c_resume_repeats_no_finished_run_and_replaces_the_broken_block(
    tmp_path: Path, gpubench: Run
) -> None:
    # So many that the second run isn't over when its first sample has been seen.
    front = Front(tmp_path, *words(write_suite(tmp_path, reps=12, count=100), "--blocks", "1"))
    campaign = until(lambda: running(tmp_path), "a first sample").parents[1]
    until(lambda: records(campaign), "the first record")
    until(lambda: running(tmp_path), "the second run's first sample")
    front.kill(SIGINT)
    assert front.end() == 130
    assert "interrupted by SIGINT; 1 of 2 runs finished; to go on: gpubench bench --campaign " in front.output
    nothing_left(lambda: cluster_processes(campaign))
    kept = {name: record for name, record in records(campaign).items() if record["status"] == "ok"}
    before = {name: (campaign / "runs" / name / "run.json").stat().st_mtime_ns for name in kept}

    gpubench("bench", "--campaign", campaign, code=0)
    after = records(campaign)
    assert {name: (campaign / "runs" / name / "run.json").stat().st_mtime_ns for name in kept} == before
    ok = [record for record in after.values() if record["status"] == "ok"]
    assert sorted((record["block"], record["variant"]) for record in ok) == [
        *((block, variant) for block in (1, 2) for variant in "ab" if (block, variant) != _other(kept)),
    ]
    nothing_left(lambda: cluster_processes(campaign))
    assert gpubench("bench", "--campaign", campaign).stdout.startswith("nothing is missing")


def _other(kept: dict[str, dict[str, object]]) -> tuple[int, str]:
    """The run of the broken block that never finished."""
    (only,) = kept.values()
    return (1, "b" if only["variant"] == "a" else "a")


def test_kill_minus_nine_of_the_front_end_ends_the_whole_job(tmp_path: Path, gpubench: Run) -> None:
    front = Front(tmp_path, *words(write_suite(tmp_path, reps=4, count=100), "--blocks", "1"))
    campaign = until(lambda: running(tmp_path), "a first sample").parents[1]
    front.kill(SIGKILL)
    front.end()
    until(lambda: not cluster_processes(campaign), "the job to end by itself")
    status = gpubench("status", campaign)
    assert status.returncode == 4
    assert "the front end is gone" in status.stdout
    assert gpubench("bench", "--campaign", campaign).returncode == 0
