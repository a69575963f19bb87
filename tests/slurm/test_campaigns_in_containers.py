"""What only campaigns in containers can get wrong: squashfs images on two hosts, by pyxis' options and by enroot."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.model.images_lock import LockRow
from gpubench.node import scratch
from tests.cli.campaigns import records
from tests.cli.test_sites import ABORTED
from tests.slurm.campaigns import Login, job_ids
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hosts import until
from tests.slurm.pyxis_files import unpacked
from tests.slurm.test_campaigns import leave_no_process, until_running

pytestmark = pytest.mark.system
RUNTIMES = ["pyxis", pytest.param("enroot", marks=pytest.mark.long)]
"""The checks and the end of a script are the same for both; what enroot does alone is in tests/runtimes."""


@pytest.fixture
def user(nobody: Login, imported: LockRow) -> Login:
    """A user other than root, whose images are squashfs files."""
    nobody.lock(imported)
    return nobody


def test_a_block_that_the_time_limit_does_not_hold_is_skipped_with_the_reason(slurm: SlurmCluster, user: Login) -> None:
    campaign = user.plan("--runtime", "pyxis", "--set", "estimates.run=60s", pyxis=True)
    slurm.say("scontrol", "update", "NodeName=n[1-4]", "State=DRAIN", "Reason=maintenance")
    try:
        user.run("submit", campaign, pyxis=True)
        number = job_ids(campaign)["j001-n1"]
        until(lambda: "Nodes" in slurm.job(number)["Reason"], "the reason")
        said = user.run("status", campaign, code=4)
        assert re.search(rf"^job j001-n1 \({number}\): PENDING: \S*(_DRAINED_|UnavailableNodes:n\[1-4\])", said)
        # Less than the block takes, and more than the warning: a job that is warned as it starts ends with 130.
        slurm.say("scontrol", "update", f"JobId={number}", "TimeLimit=3")
    finally:
        slurm.say("scontrol", "update", "NodeName=n[1-4]", "State=RESUME")
    assert slurm.wait_job(number)["JobState"] == "COMPLETED"
    said = user.run("status", campaign, code=4)
    why = "skipped: no time left: the block takes about 192 s, the job ends in"
    assert len(re.findall(rf"^block 1 \w \(\w+\): {why} \d+ s$", said, re.MULTILINE)) == 2
    assert {record["status"] for record in records(campaign).values()} == {"skipped"}


@pytest.mark.long
def test_a_container_whose_unpacking_was_cut_off_is_never_started_and_the_next_job_removes_it(
    slurm: SlurmCluster, user: Login
) -> None:
    campaign = user.plan("--runtime", "pyxis", "--nodes", "2", pyxis=True)
    hold = slurm.shared / "pyxis" / "hold"
    hold.touch()
    try:
        user.run("submit", campaign, pyxis=True)
        until(lambda: len(unpacked(slurm)) == 2, "two containers that are being unpacked")
        first = job_ids(campaign)["j001-n2"]
        assert {name.rpartition("-")[0].rpartition("-")[2] for name in unpacked(slurm)} == {first}
        slurm.say("scancel", "--signal=KILL", "--full", first)
        slurm.wait_job(first)
    finally:
        hold.unlink()
    slurm.wait_idle(["n1", "n2"])
    assert [name for name in unpacked(slurm) if f"-{first}-" in name]  # nobody could remove it
    assert user.run("submit", "--campaign", campaign, pyxis=True).startswith("job j001-n2: ")
    assert user.run("status", "--watch", campaign).endswith("2 ok of 2 runs\n")
    assert unpacked(slurm) == []


@pytest.mark.long
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_a_killed_job_left_on_its_nodes_is_listed_and_removed(
    slurm: SlurmCluster, user: Login, runtime: str
) -> None:
    campaign = user.plan("--runtime", runtime, "--nodes", "2", reps=5000, pyxis=True)
    user.run("submit", campaign, pyxis=True)
    until_running(user, campaign)
    first = job_ids(campaign)["j001-n2"]
    slurm.say("scancel", "--signal=KILL", "--full", first)
    slurm.wait_job(first)
    slurm.wait_idle(["n1", "n2"])
    leave_no_process(slurm)  # a script that was not killed with its job still removes its container
    words = [sys.executable, "-c", ABORTED, slurm.root / "hosts" / "n1" / "tmp"]
    dead = Path(subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip())
    for path in (dead, dead / scratch.HOLD):  # what a supervisor leaves that is killed with all its processes
        shutil.chown(path, campaign.stat().st_uid)
    left = sorted(unpacked(slurm))
    assert len(left) in (1, 2)  # this node's script may have ended by itself
    clean = ("sites", "clean", "local-slurm", "--nodes", "4", "--set", f"runtime={runtime}")
    said = user.run(*clean, pyxis=True)
    found = re.findall(r"^(n\d): (container|scratch directory) (\S+?)(?:, [\d.]+ [KMG]?i?B)?$", said, re.MULTILINE)
    assert sorted(Path(where).name for _, what, where in found if what == "container") == left, said
    assert [one for one in found if one[1] == "scratch directory"] == [("n1", "scratch directory", f"/tmp/{dead.name}")]
    assert f"{len(found)} left by dead jobs on n1, n2, n3, n4; remove it with --remove" in said
    assert sorted(unpacked(slurm)) == left
    said = user.run(*clean, "--remove", pyxis=True)
    assert len(re.findall("^n[12]: .*: removed$", said, re.MULTILINE)) == len(found), said
    assert said.endswith("nothing left by dead jobs on n1, n2, n3, n4\n")
    assert unpacked(slurm) == []
    assert not dead.exists()
    everywhere = [word for word in clean if word not in ("--nodes", "4")]
    assert user.run(*everywhere, "--all", pyxis=True).endswith("nothing left by dead jobs on n1, n2, n3, n4\n")
    assert not list(user.directory.glob("outputs/cleanings/*"))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_file_that_is_not_what_was_imported_is_refused_at_submit_or_in_the_job_by_name(
    slurm: SlurmCluster, user: Login, imported: LockRow, runtime: str
) -> None:
    campaign = user.plan("--runtime", runtime, "--nodes", "2", pyxis=True)
    plan = json.loads((campaign / "plan.json").read_text())
    file = Path(plan["variants"][0]["image"]["reference"])
    sound = file.read_bytes()
    try:
        file.write_bytes(sound[:-4096])
        said = user.run("submit", campaign, code=3, pyxis=True)
        assert f"{file} has {len(sound) - 4096} bytes, and {len(sound)} were imported" in said
        assert not (campaign / "jobs" / "j001-n2" / "submitted.json").exists()
        file.write_bytes(sound[: len(sound) // 2] + bytes([sound[len(sound) // 2] ^ 1]) + sound[len(sound) // 2 + 1 :])
        user.run("submit", campaign, pyxis=True)
        said = user.run("status", "--watch", campaign, code=4)
    finally:
        file.write_bytes(sound)
    assert f"{file} isn't the file that was imported: its sha256 is " in said
    assert re.search(r"^block 1 .*: lost: .*isn't the file that was imported", said, re.MULTILINE), said
    assert records(campaign) == {}, "nothing was started from it, not even what writes a record"
    assert unpacked(slurm) == []


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_why_a_container_did_not_start_is_said_by_status_and_stays_with_the_campaign(
    slurm: SlurmCluster, user: Login, runtime: str
) -> None:
    there = slurm.shared / "there-at-submit"
    there.mkdir(exist_ok=True)
    settings = ("--set", f'container.mounts=["{there}:/data"]')
    campaign = user.plan("--runtime", runtime, "--nodes", "2", *settings, pyxis=True)
    there.rmdir()
    user.run("submit", campaign, pyxis=True)
    said = user.run("status", "--watch", campaign, code=4)
    of_enroot = rf"failed to mount: {there} at .*: No such file or directory"
    why = rf"--container-mounts: source path does not exist: {there}" if runtime == "pyxis" else of_enroot
    assert re.search(rf"^job j001-n2 \(\d+\): FAILED, exit code 1: its log ends: .*{why}", said, re.MULTILINE)
    assert "exit code 40" not in said
    assert re.search(rf"^block 1 .*: lost: .*{why}", said, re.MULTILINE)
    assert unpacked(slurm) == []
