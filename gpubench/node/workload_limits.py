"""What ends a workload early, its time limit or a want of memory, and how that is told.

A worker that runs out of memory ends its workload. Otherwise Dask spills a worker's results, from the GPU to main
memory and from there to disk (and these would be measured), then pauses the worker, which takes no more tasks, and the
workload waits until its time limit.
"""

import contextlib
import signal
import threading
import traceback
from types import FrameType
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence

from gpubench.node import process_facts, proofs
from gpubench.node.process import MOST_WORDS
from gpubench.node.workloads.base import WorkloadContext
from gpubench.node.workloads.catalogue.own import PACKAGE

LOOK_S = 1.0
"""One small message to the scheduler in that time."""
MIB = 1 << 20
AGAIN_S = 1.0
AT_ONCE_S = 1e-3


class WorkloadTimeoutError(Exception):
    """A workload didn't end within its limit."""


class Limit:
    """Raise WorkloadTimeoutError in the main thread when the block takes longer than ``seconds``.

    And again every second until the block is left: Python swallows what is raised while an object is being deleted, and
    a workload lets go of thousands of futures.
    """

    def __init__(self, seconds: float) -> None:
        self._error: Exception = WorkloadTimeoutError(f"no answer within {seconds:g} s")
        self._seconds = seconds
        self._over = False

    def __enter__(self) -> "Limit":
        signal.signal(signal.SIGALRM, self._expired)
        signal.setitimer(signal.ITIMER_REAL, self._seconds, AGAIN_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Time inside doesn't count, and nothing is raised."""
        left, _ = signal.setitimer(signal.ITIMER_REAL, 0.0)
        try:
            yield
        finally:
            if not self._over:
                signal.setitimer(signal.ITIMER_REAL, left or AT_ONCE_S, AGAIN_S)

    def end(self, error: Exception) -> None:
        """End the block now, from any thread: ``error`` is raised in the main thread."""
        self._error = error
        if not self._over:
            signal.setitimer(signal.ITIMER_REAL, AT_ONCE_S, AGAIN_S)

    def _expired(self, _number: int, _frame: Optional[FrameType]) -> None:
        if not self._over:
            raise self._error


class OutOfMemoryError(Exception):
    """A worker spilled, from its GPU or to disk, or was paused for longer than a moment."""


@contextlib.contextmanager
def watched(context: WorkloadContext, end: Callable[[Exception], None]) -> Iterator[None]:
    """Look every second, in a thread, and call ``end`` with an error once the cluster can't measure any more.

    Once a worker has no memory left, with an OutOfMemoryError. With a CheckError once one is gone: a nanny of dask-cuda
    starts it anew under another address (``Nanny._on_worker_exit``), and tasks that are placed on the old one would
    wait for it until the workload's limit.
    """
    client, over = context.client, threading.Event()

    def look() -> None:
        before: Dict[str, Any] = {}
        while not over.wait(LOOK_S):
            try:
                now = client.run_on_scheduler(process_facts.workers_now)
                proofs.check_same_workers(context.workers, now["addresses"])
            except proofs.CheckError as error:
                end(error)
                return
            except Exception:  # noqa: BLE001 - the main thread finds the same error
                return
            # A worker may be paused for a moment, until garbage is collected; what is on disk stays there.
            short = now["short_of_memory"]
            gone = [
                facts for address, facts in short.items() if facts["spilled"] or facts["from_gpu"] or address in before
            ]
            if gone:
                end(OutOfMemoryError("; ".join(describe(facts) for facts in gone)))
                return
            before = short

    thread = threading.Thread(target=look, name="gpubench-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(5.0)


def check_nothing_spilled(workers: Sequence[Mapping[str, Any]], memory: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise OutOfMemoryError where a GPU worker has spilled since the start.

    ``memory`` is ``process_facts.gpu_memory`` by address: what moved since the last heartbeat the thread hasn't seen.
    """
    for worker in workers:
        moved = memory[worker["address"]]["spilled"]
        if any(moved.values()):
            raise OutOfMemoryError("{} ran out of memory: {}".format(worker["name"], _moved(**moved)))


def _moved(from_gpu: int, to_disk: int) -> str:
    """``240 MiB moved from its GPU to main memory, 12 MiB spilled to disk``."""
    moved = [(from_gpu, "moved from its GPU to main memory"), (to_disk, "spilled to disk")]
    return ", ".join(f"{size / MIB:.0f} MiB {what}" for size, what in moved if size)


def describe(facts: Mapping[str, Any]) -> str:
    """``worker-0-1 ran out of memory: paused, 240 MiB of 300 MiB in use, 12 MiB spilled to disk``."""
    parts = ["paused"] if facts["paused"] else []
    of = " of {:.0f} MiB".format(facts["limit"] / MIB) if facts["limit"] else ""
    parts.append("{:.0f} MiB{} in use".format(facts["used"] / MIB, of))
    if facts["from_gpu"] or facts["spilled"]:
        parts.append(_moved(facts["from_gpu"], facts["spilled"]))
    return "{} ran out of memory: {}".format(facts["name"], ", ".join(parts))


def describe_error(error: BaseException) -> str:
    """Kind of an error and the first line of its message; of a group of errors (Python 3.11) the first one's.

    ``mine.py:23: ZeroDivisionError: division by zero`` if it went through a file of the user's: its last line there.
    """
    while getattr(error, "exceptions", ()):
        error = error.exceptions[0]  # type: ignore[attr-defined]
    message = str(error).strip().split("\n")[0][:MOST_WORDS]
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        message = str(error.msg)
        places.append((str(error.filename), error.lineno))
    for path, line in reversed(places):
        own = PACKAGE.search(path)
        if own:
            return f"{own[1]}:{line}: {type(error).__name__}: {message}"
    return f"{type(error).__name__}: {message}"
