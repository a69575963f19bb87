"""``gpubench fetch`` through a real sshd of another host."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import Run, need
from tests.slurm.cluster import SlurmCluster
from tests.store.campaign_builder import begin, finish

pytestmark = pytest.mark.system


def test_a_campaign_of_another_host_comes_home_by_its_name(
    gpubench: Run, slurm: SlurmCluster, shared: Path, tmp_path: Path
) -> None:
    need(bool(shutil.which("rsync")), "rsync (requirements/system.sh)")
    campaign = begin(shared / "it's a $(campaign)")
    finish(campaign)
    env = {"RSYNC_RSH": f"ssh -F {slurm.ssh_config}"}
    place = ["--set", "fetch.host=n2", "--set", f"fetch.path={shared}"]
    done = gpubench("fetch", "local-slurm", campaign.directory.name, *place, env=env)
    assert done.returncode == 0, done.stderr
    home = tmp_path / "outputs" / campaign.directory.name
    for path in campaign.directory.rglob("*"):
        if path.is_file():
            assert (home / path.relative_to(campaign.directory)).read_bytes() == path.read_bytes()
    assert gpubench("report", home).returncode == 0
    again = gpubench("fetch", "local-slurm", f"n2:{campaign.directory}", env=env)
    assert again.returncode == 0, again.stderr
    lost = gpubench("fetch", "local-slurm", "nowhere:/campaign", env=env)
    assert lost.returncode == 7, lost.stderr
    assert "rsync from nowhere:/campaign ended with" in lost.stderr
