"""A client of a running cluster, in a separate Python, because this tool has no Dask: one question, one answer."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path
from typing import Any

from gpubench import resources
from gpubench.cli.campaign.running import LOOK_S, end_process, interrupts
from gpubench.errors import DataError, InterruptedByUserError, MissingToolError
from gpubench.files import write_atomically
from gpubench.model.own_workload import OwnWorkload
from gpubench.polling import poll_until
from gpubench.render import pack

STOP_S = 30.0
"""From the signal to the end of the client, which takes away what it brought first."""
NODE_HALF = "node.pyz"


@dataclasses.dataclass(frozen=True)
class SubprocessClient:
    """The client's process, once per question; its input and output are in ``directory``.

    Args:
        directory: of its own.
        python: that has Dask, in the cluster's version.
        env: of the client, beside this process's own environment.
        word: the node half's command that answers.
        own: the user's own workload that is to be measured, if it is one.
    """

    directory: Path
    python: Path
    env: dict[str, str]
    word: str
    own: OwnWorkload | None = None

    def ask(self, question: str, answer: str, limit_s: float) -> str:
        """The text of the file ``answer`` that the client wrote.

        Raises:
            MissingToolError: the client couldn't be started, or ended without an answer.
            DataError: the answer can't be read.
            InterruptedByUserError: Ctrl-C or a signal; nothing is left on the cluster.
        """
        node_half, spec, answered = (self.directory / name for name in (NODE_HALF, f"{self.word}.json", answer))
        if not node_half.exists():
            mine = dict([self.own.packed()]) if self.own else {}
            write_atomically(node_half, pack(resources.node_half() | mine))
        write_atomically(spec, question)
        answered.unlink(missing_ok=True)
        command = [str(self.python), "-I", str(node_half.resolve()), self.word]
        command += ["--spec", str(spec.resolve()), "--parent", str(os.getpid())]
        with interrupts() as interrupted, self._log.open("ab") as log:
            self._wait(command, log, interrupted, limit_s)
        if interrupted:
            raise InterruptedByUserError(f"interrupted by {interrupted[0]}; nothing is left on the cluster")
        try:
            return answered.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise MissingToolError(self._last_words()) from None
        except OSError as error:
            raise DataError(f"{answered}: {error}") from None

    @property
    def _log(self) -> Path:
        return self.directory / f"{self.word}.log"

    def _wait(self, command: list[str], log: Any, interrupted: list[str], limit_s: float) -> None:
        try:
            process = subprocess.Popen(
                command,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us
            )
        except OSError as error:
            raise MissingToolError(f"can't start {self.python}: {error.strerror}") from None
        try:
            poll_until(lambda: process.poll() is not None or interrupted, interval_s=LOOK_S, timeout_s=limit_s)
        finally:
            end_process(process, STOP_S)

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        said = lines[-1] if lines else "it ended without a message"
        return f"{self.python} couldn't {WHAT[self.word]}: {said.removeprefix(f'gpubench {self.word}: ')}"


WHAT = {"attach": "measure", "look": "check the cluster"}
