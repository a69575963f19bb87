"""``gpubench cluster`` on a site like Summit, over stand-ins: jobs, resource sets and Dask are real."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.campaigns import nothing_left
from tests.lsf.cluster import STAND_INS
from tests.lsf.test_lsf_campaigns import Login
from tests.node.runners import until
from tests.node.specs_by_hand import run_spec, write_campaign

pytestmark = pytest.mark.system

START = ("--ucx", "1.22.0", "--protocol", "tcp", "--time", "10m", "--name", "mine")
PACKED = """#!/bin/bash
#BSUB -nnodes 1 -W 0:10 -o log
{ours} --role scheduler --interface lo --scheduler-file s.json &
jsrun -n 1 -r 1 -a 1 -c 2 {ours} --role worker --scheduler-file s.json --local-directory d --nthreads 1 --nworkers 2 \\
  --memory-limit 512MB --interface lo &
wait %2
kill %1
"""

OF_THE_SHELL = {
    "OUTDIR": "/nonexistent",
    "GPUBENCH_OUTDIR": "/nonexistent",
    "GPUBENCH_BLOCKS": "7",
    "GPUBENCH_RANK": "5",
}
"""What a shell may have exported for something else; no job may heed it."""


class Cluster:
    """The standing cluster of a login node."""

    def __init__(self, login: Login) -> None:
        self.login = login
        self.directory = login.directory / "outputs" / "clusters" / "mine"
        self.file = self.directory / "scheduler.json"

    def __call__(self, *words: str | Path, code: int = 0) -> str:
        return self.login.run("cluster", *words, code=code)

    def start(self, *settings: str, nodes: int, code: int = 0) -> str:
        chosen = [word for setting in settings for word in ("--set", setting)]
        site = self.login.directory / "site.toml"
        return self("start", "--site", site, *START, "--nodes", str(nodes), *chosen, code=code)

    def processes(self) -> list[tuple[str, str]]:
        """All that lives of it: name of the compute node, empty on the launch node and below supervisors; command."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                lines = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if str(self.directory) in line + "".join(lines) and str(STAND_INS) not in line:
                env = dict(one.partition("=")[::2] for one in lines)
                found.append((env.get("STAND_IN_LSF_HOST", ""), line))
        return found

    def supervisors(self) -> list[tuple[str, bool]]:
        """Node of each, and whether it has the scheduler only."""
        lines = [(node, line) for node, line in self.processes() if "node.pyz cluster" in line]
        return sorted((node, "--role scheduler" in line) for node, line in lines)

    def ends(self) -> list[tuple[str, int]]:
        """State and exit code of every job, when all have ended."""
        numbers = sorted(path.name for path in (self.login.cluster.state / "jobs").glob("[0-9]*"))
        until(lambda: all(self.login.cluster.job(number)["stat"] in ("DONE", "EXIT") for number in numbers))
        return [(self.login.cluster.job(number)["stat"], self.login.cluster.job(number)["exit"]) for number in numbers]

    def left(self) -> list[object]:
        return [*self.processes(), *(self.login.directory / "scratch").iterdir()]


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Cluster]:
    login = Login(tmp_path, interval=5)
    yield Cluster(login)
    login.cluster.close()


def test_a_cluster_with_its_scheduler_on_the_launch_node_is_started_checked_grown_shrunk_and_stopped(
    mine: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**OF_THE_SHELL, "SCRATCHDIR": "/nonexistent"}.items():
        monkeypatch.setenv(name, value)
    said = mine.start("layout.scheduler=launch-node", nodes=2)
    assert "job j001-n2: 2 workers registered, first after" in said
    assert mine.supervisors() == [("", True), ("n1", False), ("n2", False)]
    assert "ready, 2 of 2 workers on 2 nodes" in mine("status")
    assert mine("grow", "+1").endswith("3 workers are connected\n")
    assert mine.supervisors() == [("", True), ("n1", False), ("n2", False), ("n3", False)]
    assert "ok: 3 of 3 workers" in mine("verify", "--scheduler-file", mine.file)
    assert mine("affinity", "--scheduler-file", mine.file).count("pass") == 3
    assert mine("shrink", "-1").startswith("1 worker retired")
    # LSF may say that the job has ended before rank 0 has heard that its supervisor left.
    until(lambda: "ready, 2 of 2 workers on 2 nodes" in mine("status"))
    monkeypatch.setenv("STAND_IN_LSF_SLOW", "2")  # jobs end faster than they are asked about
    assert "job j001-n2: ended\ncluster mine is stopped\n" in mine("stop")
    assert mine.ends() == [("DONE", 0)] * 2
    assert sorted((mine.directory / "jobs/j001-n2/lsf-101.log").read_text().partition("\n---")[0].splitlines()) == [
        "gpubench cluster, rank 0: rank 0 requested the stop",
        "gpubench cluster, rank 1: rank 0 requested the stop",
        "gpubench cluster, the scheduler's supervisor: gpubench cluster stop",
    ]
    nothing_left(mine.left)


def test_a_killed_job_takes_the_scheduler_in_its_own_resource_set_along_and_is_told(mine: Cluster) -> None:
    mine.start("layout.scheduler=own-set", nodes=1)
    assert mine.login.cluster.run("bkill", "101").returncode == 0
    assert mine.ends() == [("EXIT", 130)]
    assert "it has ended: interrupted by SIGTERM" in mine("status", code=4)
    assert "cluster mine is stopped" in mine("stop")
    nothing_left(mine.left)


def test_the_default_binding_of_jsrun_is_refused_at_the_start_and_fails_the_look_at_a_cluster_under_it(
    mine: Cluster,
) -> None:
    squeezed = mine.start('launch.options=["-b", "packed:1"]', "layout.threads=2", nodes=1, code=6)
    assert "--bind=packed:1, jsrun's default, gives a task 1 of its set's 2 cores" in squeezed
    assert not mine.directory.exists()
    directory = mine.login.directory
    write_campaign(directory, run_spec())
    script = PACKED.format(ours=f"{sys.executable} -I {directory}/node.pyz run")
    assert mine.login.cluster.run("bsub", text=script, cwd=directory).returncode == 0
    file = directory / "s.json"
    until(file.exists)
    look = ("--scheduler-file", file, "--python", sys.executable)
    until(lambda: "ok: 2 of 2 workers" in verified(mine, *look, "--workers", "2"))
    said = mine("affinity", *look, code=6)
    assert said.count("FAIL: 2 workers with 2 threads packed on 1 of") == 2
    assert "2 of 2 workers have the wrong CPUs or GPUs" in said
    assert json.loads(file.read_text())["address"].startswith("tcp://127.0.0.1:")


def verified(mine: Cluster, *words: str | Path) -> str:
    """What ``verify`` says, whatever its exit code."""
    try:
        return mine("verify", *words)
    except AssertionError as error:
        return str(error)
