"""An LSF cluster of stand-ins, whose nodes are names and whose jobs really run on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubench.schedulers.state import current_user
from tests.conftest import ROOT
from tests.slurm.hosts import until

STAND_INS = ROOT / "tests" / "stand_ins" / "lsf"
SHAPE = {"hosts": 4, "cores": 2, "gpus": 0, "minute": 60, "interval": 10}


class LsfCluster:
    """Its state lies in ``directory``; ``shape`` is what ``tests/stand_ins/README.md`` says."""

    def __init__(self, directory: Path, **shape: float) -> None:
        self.state = directory / "lsf"
        (self.state / "jobs").mkdir(parents=True)
        (self.state / "cluster.json").write_text(json.dumps({**SHAPE, **shape}))

    def env(self) -> dict[str, str]:
        """Variables under which the commands are found and know their cluster."""
        return {"STAND_IN_LSF": str(self.state), "PATH": f"{STAND_INS}:{os.environ['PATH']}"}

    def run(
        self, *words: str, text: str = "", cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command on the login node."""
        return subprocess.run(
            words,
            env={**os.environ, **self.env(), **({"PWD": str(cwd)} if cwd else {}), **(env or {})},
            cwd=cwd,
            input=text,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )

    def job(self, job_id: str) -> dict[str, Any]:
        """What the stand-ins know of a job."""
        known: dict[str, Any] = json.loads((self.state / "jobs" / job_id / "job.json").read_text())
        return known

    def plant(self, directory: Path, stat: str, **facts: Any) -> None:
        """Job 12, of this user and from ``directory``, in a state that can't be brought about here."""
        folder = self.state / "jobs" / "12"
        folder.mkdir()
        plain = {"id": 12, "stat": stat, "name": "x", "user": current_user(), "cwd": str(directory), "asked": {}}
        plain |= {"hosts": ["n1"], "exit": 0, "reason": "", "pid": 0}
        (folder / "job.json").write_text(json.dumps(plain | facts))

    def forget(self) -> None:
        """The planted job, which nobody can end."""
        shutil.rmtree(self.state / "jobs" / "12")

    def ended(self, directory: Path, script: str) -> tuple[str, int, str]:
        """State and exit code of a job on two nodes with this script, and what it printed."""
        done = self.run("bsub", text=f"#!/bin/bash\n#BSUB -nnodes 2 -o log\n{script}\n", cwd=directory)
        assert done.returncode == 0, done.stderr
        job_id = done.stdout.partition("<")[2].partition(">")[0]
        until(lambda: self.job(job_id)["stat"] in ("DONE", "EXIT"), "the end of the job")
        job = self.job(job_id)
        return job["stat"], job["exit"], (directory / "log").read_text().partition("\n---")[0]

    def close(self) -> None:
        """End every job that waits or runs."""
        for path in (self.state / "jobs").glob("*/job.json"):
            if json.loads(path.read_text())["stat"] not in ("DONE", "EXIT"):
                self.run("bkill", path.parent.name)
