"""Whole small campaigns on a site like Summit, over stand-ins: jobs, resource sets and clusters are real."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench.campaign import watching
from tests.cli.campaigns import campaign_in, cluster_processes, nothing_left, records, running, until, write_suite
from tests.conftest import own_queue, run_gpubench
from tests.lsf.cluster import STAND_INS, LsfCluster

pytestmark = pytest.mark.system

SITE = """
name = "little-summit"
inherits = "summit"
runtime = "venv"
device = "cpu"
interface = "lo"
env_allow = ["LANG", "PATH"]
[layout]
workers = 1
memory = "2GB"
[node]
cores = 2
gpus = 0
[batch]
account = "abc123"
warning = "1m"
[paths]
outputs = "outputs"
scratch = "{scratch}"
[image]
architecture = "x86_64"
compute_capability = ""
fabric = []
modules = []
"""


class Login:
    """The cluster's login node."""

    def __init__(self, directory: Path, **shape: float) -> None:
        self.directory = directory
        self.cluster = LsfCluster(directory, **shape)
        (directory / "scratch").mkdir()
        (directory / "site.toml").write_text(SITE.format(scratch=directory / "scratch"))

    def env(self) -> dict[str, str]:
        """Variables of its shell."""
        env = self.cluster.env()
        return {**env, "PATH": f"{self.directory / 'tools'}:{env['PATH']}"}

    def run(self, *words: str | Path, code: int = 0) -> str:
        """What ``gpubench`` says; it must exit with ``code``."""
        done = run_gpubench(words, self.directory, {**self.env(), **own_queue(self.directory)})
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def break_bjobs(self, *calls: int) -> None:
        """Let these calls of ``bjobs`` (from 1; -1: every one) end by SIGPIPE, as clients do whose controller ends."""
        tools, count = self.directory / "tools", self.directory / "bjobs-calls"
        tools.mkdir(exist_ok=True)
        (tools / "bjobs").write_text(
            f'#!/bin/bash\necho >>"{count}"\nnumber=$(wc -l <"{count}")\n'
            f'case " {" ".join(map(str, calls))} " in *" $number "*|*" -1 "*) kill -PIPE $$;; esac\n'
            f'exec "{STAND_INS}/bjobs" "$@"\n'
        )
        (tools / "bjobs").chmod(0o755)

    def submit(self, *settings: str, reps: int = 2, count: int = 40) -> Path:
        """A campaign of A against A on two nodes, handed over; its directory."""
        suite = write_suite(self.directory, reps=reps, count=count)
        chosen = [word for setting in settings for word in ("--set", setting)]
        words = ("--variants", "a=1.22.0 b=1.22.0", "--protocol", "tcp", "--nodes", "2", "--blocks", "1", "--seed", "1")
        self.run("submit", "--site", self.directory / "site.toml", "--suite", suite, *words, *chosen)
        return campaign_in(self.directory)

    def ended(self) -> dict[str, Any]:
        """The job, when it has ended."""
        until(lambda: self.cluster.job("101")["stat"] in ("DONE", "EXIT"), "the end of the job")
        return self.cluster.job("101")

    def left(self, campaign: Path) -> list[object]:
        """What of the campaign lives or lies around on its nodes; LSF itself may not have gone to bed yet."""
        alive = [words for words in cluster_processes(campaign).values() if f"{STAND_INS}/" not in words]
        return [*alive, *(self.directory / "scratch").iterdir()]


@pytest.fixture
def login(tmp_path: Path) -> Iterator[Login]:
    made = Login(tmp_path, interval=5)
    yield made
    made.cluster.close()


@pytest.mark.parametrize(
    ("scheduler", "client"),
    [
        pytest.param("launch-node", "rank0", marks=pytest.mark.long),
        ("launch-node", "launch-node"),
        ("own-set", "rank0"),
    ],
)
def test_a_campaign_runs_with_scheduler_and_client_where_the_profile_wants_them(
    login: Login, scheduler: str, client: str
) -> None:
    campaign = login.submit(f"layout.scheduler={scheduler}", f"layout.client={client}")
    assert login.ended()["stat"] == "DONE"
    assert "2 ok of 2 runs" in login.run("status", campaign)
    assert [path.read_text().partition("\n---")[0] for path in campaign.glob("jobs/*/lsf-101.log")] == [""]
    for name in records(campaign):
        facts = json.loads((campaign / "runs" / name / "provenance.json").read_text())
        assert sorted(node["rank"] for node in facts["nodes"]) == [0, 1, 2]
        cores = {process["role"]: len(process["affinity"]) for process in facts["processes"]}
        apart = 1 if scheduler == "own-set" else 2
        assert cores["scheduler"] == apart
        assert cores["worker"] == (1 if scheduler == "own-set" else 2)
        assert all(node["environment"]["OMP_PROC_BIND"] == "FALSE" for node in facts["nodes"])
        assert len(facts["registered_s"]) == 2
        assert all(0 < at < 120 for at in facts["registered_s"])
    nothing_left(lambda: login.left(campaign))


def test_a_scheduler_command_that_fails_now_and_then_ends_no_watching(
    login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "ASK_S", 0.2)
    campaign = login.submit()
    login.break_bjobs(1, 2, 4)
    said = login.run("status", "--watch", campaign)
    assert said.count("bjobs 101 failed: exit code -13; trying again every 0.2 s") == 2
    assert said.endswith("2 ok of 2 runs\n")


def test_a_scheduler_that_no_longer_answers_ends_the_watching(login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "ASK_S", 0.0)
    campaign = login.submit()
    login.break_bjobs(-1)
    said = login.run("status", "--watch", campaign, code=7)
    assert said.count("trying again") == 1
    assert "bjobs 101 failed: exit code -13" in said.splitlines()[-1]
    login.break_bjobs()
    login.run("cancel", campaign)


def test_a_cancelled_job_ends_in_order_and_leaves_nothing(login: Login) -> None:
    campaign = login.submit(count=500, reps=2_000)
    until(lambda: running(login.directory), "a run under way")
    login.run("cancel", campaign)
    job = login.ended()
    assert (job["stat"], job["exit"]) == ("EXIT", 130)
    (record,) = records(campaign).values()
    assert (record["status"], "interrupted by SIG" in record["reason"]) == ("skipped", True)
    assert "FAILED, exit code 130: TERM_OWNER: job killed by owner" in login.run("status", campaign, code=4)
    nothing_left(lambda: login.left(campaign))


def test_a_job_near_its_time_limit_is_told_and_ends_in_order(tmp_path: Path) -> None:
    login = Login(tmp_path, minute=8, interval=5)  # a warning after 16 of 40 seconds, which are enough for an end
    campaign = login.submit("limits.job=5m", "batch.warning=3m", count=500, reps=20_000)
    job = login.ended()
    assert (job["stat"], job["exit"], job["reason"]) == ("EXIT", 130, "")
    (record,) = records(campaign).values()
    assert (record["status"], "SIGTERM" in record["reason"]) == ("skipped", True)
    assert "FAILED, exit code 130: it was asked to end" in login.run("status", campaign, code=4)
    nothing_left(lambda: login.left(campaign))


def test_the_death_of_the_scheduler_on_the_launch_node_fails_that_run_and_no_other(login: Login) -> None:
    campaign = login.submit("layout.scheduler=launch-node", count=500, reps=8)

    def schedulers() -> list[int]:  # their supervisors say --role scheduler, too
        found = cluster_processes(campaign).items()
        own = ("--role scheduler", "--parent")
        return [pid for pid, words in found if all(word in words for word in own) or "dask scheduler" in words]

    # Known before the first sample: what is looked for afterwards may be over by then.
    (scheduler,) = until(schedulers, "the scheduler")
    until(lambda: running(login.directory), "a run under way")
    os.kill(scheduler, signal.SIGKILL)
    assert login.ended()["stat"] == "DONE"
    assert sorted((record["status"], record["reason"]) for record in records(campaign).values()) == [
        ("failed", "scheduler ended: killed by SIGKILL"),
        ("ok", ""),
    ]
    nothing_left(lambda: login.left(campaign))
