"""Nodes whose clocks differ; an ordinary user under the umasks that sites set."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from gpubench.node.admission import VARIABLE, environment
from gpubench.store.campaign import Campaign
from tests.cli.campaigns import records
from tests.conftest import need
from tests.slurm.campaigns import UCX, Login
from tests.slurm.cluster import SlurmCluster
from tests.slurm.test_campaigns import leave_no_process, until_running

pytestmark = pytest.mark.system
SOURCE = Path(__file__).with_name("clock_step.c")
AHEAD_S = 300


@pytest.mark.long
@pytest.mark.parametrize("ahead", ["n1", "n2"])
def test_nodes_whose_clocks_differ_by_five_minutes_change_neither_order_nor_deadlines(
    ahead: str, slurm: SlurmCluster, login: Login
) -> None:
    need(shutil.which("gcc") is not None, "gcc (requirements/system.sh)")
    library = login.directory / "clock_step.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, SOURCE], check=True)
    faked = {"LD_PRELOAD": str(library), "CLOCK_STEP_FILE": "/tmp/clock-step"}  # each host has its own /tmp
    setting = ",".join(f"{name}={value}" for name, value in faked.items())
    variants = f"a={UCX},{setting} b={UCX},{setting}"
    steps = {name: slurm.root / "hosts" / name / "tmp" / "clock-step" for name in ("n1", "n2")}
    for name, step in steps.items():
        step.write_text(str(AHEAD_S if name == ahead else 0))
    try:
        campaign = login.plan("--nodes", "2", "--variants", variants, "--blocks", "2")
        login.run("submit", campaign, env=faked)
        assert login.run("status", "--watch", campaign).endswith("4 ok of 4 runs\n")
    finally:
        for step in steps.values():
            step.unlink()
    found = {record["run"]: record for record in records(campaign).values()}
    planned = [run.run for _, _, run in Campaign.open(campaign).rows()]
    times = [moment for run in planned for moment in (found[run]["started_at"], found[run]["ended_at"])]
    assert times == sorted(times)
    # Rank 0 writes the record: it is on n1, and its clock was really moved.
    (last,) = campaign.glob(f"runs/{planned[-1]}-*/run.json")
    moved = dt.datetime.fromisoformat(times[-1]).timestamp() - last.stat().st_mtime
    assert abs(moved - (AHEAD_S if ahead == "n1" else 0)) < 60
    assert "no findings" in login.run("results", "fsck", campaign)


def of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("umask", [pytest.param("077", marks=pytest.mark.long), "002"])
def test_what_an_ordinary_user_runs_under_any_umask_is_writable_for_nobody_else_and_shows_no_secret(
    umask: str, slurm: SlurmCluster, nobody: Login
) -> None:
    nobody.under(umask)
    campaign = nobody.plan("--nodes", "2", reps=5000)
    nobody.run("submit", campaign)
    until_running(nobody, campaign)
    (meeting,) = campaign.glob("runs/.rendezvous-*")
    assert of(meeting) == 0o600
    token = json.loads(meeting.read_text())["token"]
    secrets = [token, environment("tcp", token)[VARIABLE].partition(":")[2]]
    for name in ("n1", "n2"):
        lines = list(slurm.hosts[name].processes().values())
        assert any("worker" in line for line in lines)
        assert not [line for line in lines if any(secret in line for secret in secrets)]
        scratches = list((slurm.root / "hosts" / name / "tmp").glob("gpubench-*"))
        assert scratches
        assert {of(path) for path in scratches} == {0o700}
    there = [path for path in campaign.rglob("*") if not path.is_symlink()]
    assert not [path for path in there if of(path) & 0o002]
    shown = [path for path in there if path.is_file() and of(path) & 0o044]
    assert bool(shown) == (umask == "002")
    assert not [path for path in shown if any(secret.encode() in path.read_bytes() for secret in secrets)]
    nobody.run("cancel", campaign)
    leave_no_process(slurm)
