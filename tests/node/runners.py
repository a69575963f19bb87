"""Supervisors of one run, started the way job scripts start them."""

import json
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpubench.node.spec import Deadlines, RunSpec
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE, marked
from gpubench.store.rundirs import read_record
from tests.node.specs_by_hand import RUN, quiet_environment, run_spec, write_campaign

SHORT = Deadlines(start_s=60.0, stop_s=30.0, silence_s=60.0)

TOKEN = "start-1"
"""Of the job; its runs derive their secret from it."""


class Runner:
    """One campaign of one run, and supervisors of it under the Python of these words."""

    def __init__(self, python: list[str], directory: Path, **changes: Any) -> None:
        self.directory = directory
        self.spec: RunSpec = run_spec(**{"deadlines": SHORT, **changes})
        self.path = write_campaign(directory, self.spec)
        self._command = [*python, str(directory / "node.pyz"), "run", "--spec", str(self.path)]
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self._command, *words],
            env=quiet_environment(GPUBENCH_JOB_TOKEN=TOKEN, SCRATCHDIR=str(self.directory), **env),
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process

    def run(self, *words: str, **env: str) -> tuple[int, str]:
        return finish(self.start(*words, **env))

    def kill(self) -> None:
        """The supervisors, when a test is over."""
        for process in self.processes:
            process.kill()
            process.communicate()

    def living(self) -> dict[int, str]:
        """Processes of the campaign with their marks."""
        return marked(CLUSTER_VARIABLE, lambda mark: mark.startswith(f"{self.directory}/runs:"))

    def provenance(self) -> Any:
        return json.loads((self.run_dir() / "provenance.json").read_text(encoding="utf-8"))

    def run_dir(self, attempt: int = 1) -> Path:
        return self.directory / "runs" / f"{RUN}-{attempt}"

    def record(self, attempt: int = 1) -> Any:
        found = read_record(self.run_dir(attempt))
        assert found is not None, sorted(self.directory.rglob("*"))
        return found

    def left(self) -> list[str]:
        """What stands in the campaign beside the planned files and the run directories."""
        planned = {"node.pyz", "jobs", "runs"}
        return sorted(path.name for path in self.directory.iterdir() if path.name not in planned) + sorted(
            path.name for path in (self.directory / "runs").iterdir() if path.name.startswith(".")
        )


class NeverAsked:
    """In place of a ``StopRequest``, in any thread: nobody asks for an end."""

    def check(self) -> None:
        """Nothing."""

    def asked(self) -> bool:
        return False

    def wait(self, handles: Sequence[Any], timeout_s: float) -> None:
        select.select(handles, [], [], timeout_s)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=150)
    return process.returncode, output


def printed(code: str) -> str:
    """What a Python of its own prints, whose input is at its end."""
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 150
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
