"""A PBS server of stand-ins; its nodes are names, or the hosts of tests/slurm/hosts.py."""

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

STAND_INS = ROOT / "tests" / "stand_ins" / "pbs"
NAMES = {f"n{number}": 0 for number in range(1, 5)}


class PbsCluster:
    """Its state lies in ``directory``; nodes must see ``commands``, where ``server.py`` says what the rest is."""

    def __init__(
        self,
        directory: Path,
        *,
        nodes: Mapping[str, int] | None = None,
        history: bool = True,
        kill_delay: float = 10,
        unescaped: bool = True,
        commands: Path = STAND_INS,
    ) -> None:
        self._commands = commands
        self.state = directory / "pbs"
        (self.state / "jobs").mkdir(parents=True)
        self._settings: dict[str, Any] = {"nodes": dict(nodes or NAMES), "history": history, "kill_delay": kill_delay}
        self._settings["unescaped"] = unescaped
        self.set()

    def set(self, **settings: bool) -> None:
        """Change the server's settings."""
        self._settings |= settings
        (self.state / "server.json").write_text(json.dumps(self._settings))

    def env(self) -> dict[str, str]:
        """Variables under which the commands are found and know their server."""
        return {"STAND_IN_PBS": str(self.state), "PATH": f"{self._commands}:{os.environ['PATH']}"}

    def job(self, job_id: str) -> dict[str, Any]:
        """The attributes of a job, those that qstat shows."""
        known: dict[str, Any] = json.loads((self.state / "jobs" / job_id.partition(".")[0] / "job.json").read_text())
        attributes: dict[str, Any] = known["attributes"]
        return attributes

    def plant(self, directory: Path, **attributes: object) -> None:
        """Job 12, of this user and from ``directory``, in a state that can't be brought about here."""
        known = {"Job_Name": "x", "Job_Owner": f"{current_user()}@login", "exec_host": "n1/0*2+n2/0*2", **attributes}
        variables = {"PBS_O_WORKDIR": str(directory), "NUMBER": "005", "TEXT": "a,b 'c' \"d\"\n\\e"}
        variables["LINES"] = '\n"job_state":"F",'
        plain = {"id": "12.pbs-server", "attributes": known, "variables": variables, "hosts": ["n1", "n2"], "pid": 0}
        folder = self.state / "jobs" / "12"
        folder.mkdir()
        (folder / "job.json").write_text(json.dumps(plain))

    def forget(self) -> None:
        """The planted job, which nobody can end."""
        shutil.rmtree(self.state / "jobs" / "12")

    def close(self) -> None:
        """End every job that waits or runs."""
        for path in (self.state / "jobs").glob("*/job.json"):
            if self.job(path.parent.name)["job_state"] != "F":
                subprocess.run(
                    ["qdel", json.loads(path.read_text())["id"]], env={**os.environ, **self.env()}, check=False
                )
