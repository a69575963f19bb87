"""Campaigns on two hosts with software that comes as modules, by the module command that Debian has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpubench.images.kinds.venvs import ensure
from gpubench.store.rundirs import read_provenance
from tests.cli.campaigns import records
from tests.conftest import need
from tests.slurm.campaigns import UCX, Login
from tests.slurm.cluster import SlurmCluster
from tests.slurm.test_campaigns import leave_no_process

pytestmark = pytest.mark.system
HOME = Path("/usr/share/modules")


def test_runs_load_the_sites_modules_on_every_host(slurm: SlurmCluster, login: Login, cache: Path) -> None:
    need(HOME.is_dir(), "environment-modules")
    image, _ = ensure([UCX], cache / "gpubench", print)[UCX]
    libraries = image.env["LD_LIBRARY_PATH"]
    files = login.directory / "modulefiles"
    (files / "ucx").mkdir(parents=True)
    (files / "ucx" / UCX).write_text(
        f"#%Module1.0\nprepend-path LD_LIBRARY_PATH {libraries}\nsetenv UCX_HOME {libraries}\n"
    )
    env = {"MODULESHOME": str(HOME), "MODULEPATH": str(files), "PATH": f"{slurm.env()['PATH']}"}
    settings = [
        *("--set", "runtime=modules", "--set", f"image.modules={json.dumps(['ucx/{ucx}'])}"),
        *(
            "--set",
            f"image.prefix={Path(image.python).parents[1]}",
            "--set",
            f"paths.images={login.directory / 'images'}",
        ),
    ]
    login.run("images", "build", UCX, "--site", "local-slurm", *settings, env=env)
    campaign = login.plan(*settings, "--nodes", "2", "--protocol", "ucx")
    login.run("submit", campaign, env=env)
    assert login.run("status", "--watch", campaign, env=env).endswith("2 ok of 2 runs\n")
    for run, record in records(campaign).items():
        assert (record["status"], record["transport"], record["hosts"]) == ("ok", ["tcp"], ["n1", "n2"])
        processes = read_provenance(campaign / "runs" / run)["processes"]
        assert all(process["ucx"]["path"].startswith(str(Path(libraries).resolve())) for process in processes)
    leave_no_process(slurm)
