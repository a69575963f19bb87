"""``--notify``: a command that gets the final verdicts, and can call a webhook."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Annotated

import typer

from gpubench.cli.say import warn
from gpubench.model.text import shortened

if TYPE_CHECKING:
    from gpubench.stats.verdict import Verdict

LIMIT_S = 60.0
_KEPT_BYTES = 4096
"""Of the end of what the command prints on standard error."""
_END_S = 1.0
"""For the rest of standard error, which a process that the command left behind may hold open."""

Notify = Annotated[
    str | None,
    typer.Option(
        metavar="CMD",
        help="Shell command to run on the finished verdicts, whose JSON is its standard input. It gets "
        "GPUBENCH_CAMPAIGN, GPUBENCH_VERDICT (the worst) and GPUBENCH_EXIT_CODE, and has 60 s. A failure is only "
        "a warning.",
    ),
]
_WORST_FIRST = ("broken", "regression", "inconclusive", "improvement", "equivalent")


def notify(command: str, document: str, *, name: str, verdicts: Sequence[Verdict], code: int) -> None:
    """Run the command; its output is discarded, and a failure is one warning.

    Args:
        document: the verdicts as JSON.
    """
    words = {one.verdict for one in verdicts}
    told = {
        "GPUBENCH_CAMPAIGN": name,
        "GPUBENCH_VERDICT": next((word for word in _WORST_FIRST if word in words), ""),
        "GPUBENCH_EXIT_CODE": str(code),
    }
    process = None
    try:
        with tempfile.TemporaryFile() as given:
            given.write(document.encode())
            given.seek(0)
            with _interrupted_later():
                process = subprocess.Popen(
                    ["sh", "-c", command],
                    stdin=given,
                    env={**os.environ, **told},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
        said = _LastLine(process.stderr)
        process.wait(LIMIT_S)
        if process.returncode:
            warn(f"--notify ended with exit code {process.returncode}: {said.text()}")
    except OSError as error:
        warn(f"--notify couldn't be run: {error.strerror}")
    except subprocess.TimeoutExpired:
        warn(f"--notify was ended after {LIMIT_S:g} s")
    finally:
        if process is not None and process.returncode is None:  # too slow, or the user interrupts us
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with all that it has started
            process.wait()


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """A Ctrl-C within counts at the end: else a process that has just started would be known to nobody."""
    caught: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    for number in caught[:1]:
        signal.raise_signal(number)


class _LastLine:
    """Reads a stream in the background to its end, and keeps the end only."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream = stream
        self._kept = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._stream:
            while more := os.read(self._stream.fileno(), 2**16):
                self._kept = (self._kept + more)[-_KEPT_BYTES:]

    def text(self) -> str:
        """The last line that isn't empty."""
        self._reader.join(_END_S)
        lines = self._kept.decode("utf-8", "replace").strip().splitlines()
        return shortened(lines[-1].strip(), 200) if lines else "no output"
