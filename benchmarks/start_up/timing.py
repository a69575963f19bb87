"""The three contestants as Slurm jobs, one at a time, and the two moments of each that count."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks.start_up import sequences
from tests.slurm.campaigns import Login
from tests.slurm.cluster import SlurmCluster

SUITE = """
name = "start-up"
reps = 1
warmup = 0
[[workload]]
name = "tasks"
[workload.params]
count = 40
"""
NAMES = ("ours", "bare", "sleeps")


class Contest:
    """Jobs on ``nodes`` nodes with ``workers`` workers each, over TCP; a campaign of ours has a block per round."""

    def __init__(self, slurm: SlurmCluster, login: Login, nodes: int, workers: int, rounds: int) -> None:
        self.slurm = slurm
        self.nodes = nodes
        suite = login.directory / "start-up.toml"
        suite.write_text(SUITE)
        shape = ("--nodes", str(nodes), "--workers", str(workers), "--blocks", str(rounds), "--suite", suite)
        self.campaign = login.plan(*shape)
        plan = json.loads((self.campaign / "plan.json").read_text())
        (self.job,) = (self.campaign / "jobs").iterdir()
        image = plan["variants"][0]["image"]
        self.prior = login.directory / "prior"
        self.prior.mkdir()
        for name, text in sequences.files(image["python"], image["env"], workers).items():
            (self.prior / name).write_text(text)

    def seconds(self, name: str, number: int) -> float:
        """From the first line of the job's script to the first sample; ``number`` is the round, from 1.

        Raises:
            AssertionError: the job failed.
        """
        if name != "ours":
            job = self._run((self.prior / f"{name}.sh").read_text(), self.prior, {})
            return float((self.prior / f"first-{job}").read_text()) - began(self.prior, job)
        before = set(self.campaign.glob("runs/*/samples.jsonl"))
        job = self._run((self.job / "job.sh").read_text(), self.job, {"GPUBENCH_BLOCKS": str(number)})
        taken = set(self.campaign.glob("runs/*/samples.jsonl")) - before
        return min(map(first_sample, taken)) - began(self.job, job)

    def _run(self, script: str, directory: Path, env: Mapping[str, str]) -> str:
        """Number of the job, which has ended well."""
        submitted = subprocess.run(
            ["sbatch", "--parsable", f"--nodes={self.nodes}"],
            input=sequences.clocked(script),
            cwd=directory,
            env={**self.slurm.env(), **env},
            capture_output=True,
            text=True,
            check=True,
        )
        job = submitted.stdout.strip()
        state = self.slurm.wait_job(job, timeout=120)["JobState"]
        assert state == "COMPLETED", f"job {job} in {directory}: {state}"
        self.slurm.wait_idle()
        return job


def began(directory: Path, job: str) -> float:
    """When the job's script did."""
    return float((directory / f"began-{job}").read_text())


def first_sample(file: Path) -> float:
    """When the first one was taken, in seconds of the Unix clock."""
    line = json.loads(file.read_text().splitlines()[0])
    return dt.datetime.fromisoformat(line["started_at"]).timestamp()
