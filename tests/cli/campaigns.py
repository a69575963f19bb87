"""Small real campaigns, and what their directories and the process table say."""

import json
import os
import signal
import subprocess
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.conftest import GPUBENCH, own_queue, plain_environment

TINY = """
name = "tiny"
reps = {reps}
[[workload]]
name = "tasks"
[workload.params]
count = {count}
"""


def write_suite(directory: Path, *, reps: int = 3, count: int = 40) -> Path:
    """A suite of one small workload."""
    path = directory / "tiny.toml"
    path.write_text(TINY.format(reps=reps, count=count))
    return path


def words(suite: Path, *more: str, variants: str = "a=1.22.0 b=1.22.0", protocol: str = "tcp") -> list[str]:
    """Words of a small bench: A against A over tcp on one worker, which starts fastest; one run after the other."""
    small = ["--protocol", protocol, "--workers", "1", "--seed", "1", "--set", "layout.arrangement=sequential"]
    return ["bench", "--suite", str(suite), "--variants", variants, *small, *more]


class Front:
    """A front end in the background; ``under`` are the words of a program that starts it."""

    def __init__(
        self, directory: Path, *arguments: str, env: dict[str, str] | None = None, under: Sequence[str] = ()
    ) -> None:
        self.directory = directory
        self.log = directory / f"front-{time.monotonic_ns()}.log"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [*under, str(GPUBENCH), *arguments],
                cwd=directory,
                env=plain_environment({**own_queue(directory), **(env or {})}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """Everything that it has printed."""
        return self.log.read_text()

    def end(self, timeout: float = 240) -> int:
        """Wait for its end; the exit code."""
        return self.process.wait(timeout)

    def kill(self, number: int) -> None:
        """Send it a signal, as a terminal or an administrator would."""
        os.kill(self.process.pid, number)


def until(condition: Callable[[], Any], what: str, timeout: float = 240) -> Any:
    """Poll until the condition holds, and return its value."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {timeout:.0f} s for {what}")


def nothing_left(left: Callable[[], object]) -> None:
    """Nothing of what was ended is left; a moment is theirs, since whoever looks may be faster than the last of them.

    Raises:
        AssertionError: after 30 s something still is.
    """
    deadline = time.monotonic() + 30
    while left() and time.monotonic() < deadline:
        time.sleep(0.1)
    found = left()
    assert not found, found


def campaign_in(directory: Path) -> Path:
    """The one campaign below ``outputs/``."""
    (found,) = (directory / "outputs").iterdir()
    return found


def running(directory: Path) -> Path | None:
    """The directory of a run that has taken its first sample and isn't finished."""
    for path in (directory / "outputs").glob("*/runs/*-*"):
        if (path / "samples.jsonl").exists() and not (path / "run.json").exists():
            return path
    return None


def records(campaign: Path) -> dict[str, dict[str, Any]]:
    """Every run record by the name of its directory."""
    return {path.parent.name: json.loads(path.read_text()) for path in sorted(campaign.glob("runs/*/run.json"))}


def files_with(text: str, directory: Path) -> list[str]:
    """Files below ``directory`` that hold ``text``, also inside archives."""
    wanted, found = text.encode(), []
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        pieces = [path.read_bytes()]
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                pieces += [archive.read(name) for name in archive.namelist()]
        if any(wanted in piece for piece in pieces):
            found.append(str(path.relative_to(directory)))
    return found


def cluster_processes(campaign: Path) -> dict[int, str]:
    """Processes on this machine that belong to the campaign: command lines by process id.

    By its whole path: another test's campaign, of the same second beside this one, has the same name.
    """
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            places = f"{(entry / 'cwd').readlink()} {(entry / 'environ').read_bytes().decode('utf-8', 'replace')}"
        except OSError:
            continue
        if str(campaign) in command or str(campaign) in places:  # Dask gives its processes another command line
            found[int(entry.name)] = command
    return found


def role_processes(campaign: Path, role: str) -> list[int]:
    """Process ids of the scheduler or the workers of the run that is under way, if it has started them."""
    names = (f"--role {role}", f"dask {role}")
    return [pid for pid, command in cluster_processes(campaign).items() if any(name in command for name in names)]


SIGINT, SIGKILL = signal.SIGINT, signal.SIGKILL
