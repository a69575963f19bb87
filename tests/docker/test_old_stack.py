"""The oldest stack in a container: Python 3.9 and the dask of its time run the same node half."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docker.daemon import DockerDaemon, RegistryServer, debian_base
from tests.docker.site import Site, processes

pytestmark = [pytest.mark.system, pytest.mark.long, pytest.mark.timeout(900)]

KINDS = """
name = "kinds"
reps = 1
[[workload]]
name = "merge"
[workload.params]
rows_per_worker = 2000
[[workload]]
name = "transpose-sum"
[workload.params]
size = 200
chunk = 100
[[workload]]
name = "tasks"
[workload.params]
count = 10
[[workload]]
name = "message"
[workload.params]
size = "10KB"
round_trips = 4
"""
"""The workloads of suite quick, as small as can be."""


def test_an_image_of_python_39_and_the_dask_of_its_time_runs_the_same_node_half(
    tmp_path: Path, daemon: DockerDaemon, registry: RegistryServer
) -> None:
    old = Site(tmp_path, daemon, registry, debian_base(daemon, "bullseye"))
    network = ["--set", "image.build_network=host"]
    done = old.run("images", "build", "none", "--stack", "dask-2023.3.2", "--base", old.base, *network)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    quick = tomllib.loads((ROOT / "suites" / "quick.toml").read_text())["workload"]
    assert [one["name"] for one in tomllib.loads(KINDS)["workload"]] == [one["name"] for one in quick]
    (tmp_path / "kinds.toml").write_text(KINDS)
    words = ["bench", "--runtime", "docker", "--protocol", "tcp", "--variants", "a=none b=none", "--seed", "1"]
    done = old.run(*words, "--blocks", "1", "--suite", "kinds.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    (campaign,) = (tmp_path / "outputs").glob("local-kinds-*")
    found = processes(campaign)
    assert {(process["ucx"]["loaded"], process["versions"]["distributed"]) for process in found} == {
        ("none", "2023.3.2")
    }
    assert {process["python"].rpartition(".")[0] for process in found} == {"3.9"}
    assert len({process["node_half"] for process in found}) == 1
