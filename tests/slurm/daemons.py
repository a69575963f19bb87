"""Programs in the foreground that end with the test run, whatever ends it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_START_S = 120.0
_STOP_S = 20.0


class Daemon:
    """One program; ``start`` and ``stop`` may alternate."""

    def __init__(self, words: list[str], log: Path, env: Mapping[str, str] | None = None, user: str = "") -> None:
        self._words = words
        # A program that changes its user by itself would no longer hear of the end of the test run.
        self._become = [f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        self._log = log
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, ready: Callable[[], bool]) -> None:
        """Start and wait until ``ready``.

        Raises:
            RuntimeError: it ended, or was not ready in time; with the end of its log.
        """
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", *self._become, "--pdeathsig", "KILL", *self._words],
                cwd="/",
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_S
        while not ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self._words[0]} did not start:\n{self._log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)

    def stop(self, *, kill: bool = False) -> None:
        """End it, at once with ``kill``; nothing if it does not run."""
        if self._process is None:
            return
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def answers(words: list[str], env: Mapping[str, str] | None = None) -> bool:
    """Whether a command succeeds within ten seconds."""
    try:
        done = subprocess.run(
            words,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
