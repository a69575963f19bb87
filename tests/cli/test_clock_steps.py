"""A machine whose clock is set by an hour while a campaign runs: order, records and verdicts stay right."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from gpubench.store.campaign import Campaign
from tests.cli.campaigns import Front, records, until, words, write_suite
from tests.conftest import Run, need

pytestmark = pytest.mark.system
SOURCE = Path(__file__).with_name("clock_step.c")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Moves the time of day for whoever loads it. (libfaketime 0.9.10 breaks ``time.sleep`` of Python 3.11 instead.)"""
    need(shutil.which("gcc") is not None, "gcc (requirements/system.sh)")
    made = tmp_path / "clock_step.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", made, SOURCE], check=True)
    return made


@pytest.mark.parametrize("steps", [("3600", "-3600"), pytest.param(("-3600", "7200"), marks=pytest.mark.long)])
def test_a_clock_that_is_set_twice_changes_neither_order_nor_deadlines(
    steps: tuple[str, str], library: Path, gpubench: Run, tmp_path: Path
) -> None:
    step = tmp_path / "step"
    step.write_text("0")
    faked = {"LD_PRELOAD": str(library), "CLOCK_STEP_FILE": str(step)}
    setting = ",".join(f"{name}={value}" for name, value in faked.items())
    suite = write_suite(tmp_path, reps=3, count=20)
    variants = f"a=1.22.0,{setting} b=1.22.0,{setting},MALLOC_ARENA_MAX=2"
    front = Front(tmp_path, *words(suite, "--blocks", "2", variants=variants), env=faked)
    for number, seconds in enumerate(steps, 1):
        until(lambda number=number: len(list(tmp_path.glob("outputs/*/runs/*/run.json"))) >= number, f"run {number}")
        step.write_text(seconds)
    assert front.end() == 0, front.output
    (path,) = (plan.parent for plan in tmp_path.glob("outputs/*/plan.json"))
    campaign = Campaign.open(path)
    planned = [run.run for job in campaign.jobs for block in job.blocks for run in block.runs]
    found = {record["run"]: record for record in records(path).values()}
    times = [moment for run in planned for moment in (found[run]["started_at"], found[run]["ended_at"])]
    assert times == sorted(times)
    assert "side by side" not in front.output
    checked = gpubench("results", "fsck", path)
    assert "no findings" in checked.stdout, checked.stdout
    assert json.loads((path / "verdicts.json").read_text())
