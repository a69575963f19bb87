"""How the supervisors of one run find each other: by one small file on the shared file system, or by rank 0's name.

The file's path contains the run and a hash of the job's token, so it is never used twice. The file is renamed into
place and holds the token. NFS can hide a new file for half a minute and can show an old one, so a reader that finds no
file, a short one, or one with another token reads again, with jitter, until its deadline.

Without a shared file system: the name resolves when rank 0's pod has an address, and the port answers when its
supervisor listens. Until then, and while rank 0 is at an earlier run, callers try again. A caller of a run that rank 0
has finished is told that it is over.
"""

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

from gpubench.node.control_channel import FACTS, OVER, STOP, Connection, join
from gpubench.node.stop import IDLE_S, StopRequest
from gpubench.node.workloads.clock import poll_until
from gpubench.node.writer.atomic import write_atomic

RENDEZVOUS = "gpubench/rendezvous/1"
TOKEN_VARIABLE = "GPUBENCH_JOB_TOKEN"  # noqa: S105 - the name of a variable
"""Holds the token, which is new for every start of the job."""
POLL_S = 0.05
LONGEST_POLL_S = 1.0
VARIABLE = "GPUBENCH_RENDEZVOUS"
"""Where there is no shared file system: rank 0's name and port."""
CONNECT_S = 5.0
EVERY_ADDRESS = ""
"""Where rank 0 listens if others look for its name: a Service has the first address of a pod, or that of its node, and
the run's interface may be a second one."""


class RendezvousTimeoutError(Exception):
    """Rank 0 didn't show up in time."""


def path_for(runs_dir: Path, run: str, token: str) -> Path:
    """The file of this run in this start of the job. Other users can list file names, so the name holds a hash of the
    token.
    """
    return runs_dir / f".rendezvous-{run}-{hashlib.sha256(token.encode()).hexdigest()[:16]}"


def publish(path: Path, token: str, facts: Dict[str, Any]) -> None:
    body = {"schema": RENDEZVOUS, "token": token, "facts": facts}
    write_atomic(path, json.dumps(body).encode("utf-8"), mode=0o600)


def read(path: Path, token: str) -> Optional[Dict[str, Any]]:
    """The facts; None without a complete file that holds the token."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    facts: Dict[str, Any] = body["facts"]
    return facts if body["token"] == token else None


def wait(path: Path, token: str, deadline: float, stopped: Callable[[], bool]) -> Dict[str, Any]:
    """Read until the file is there.

    Args:
        deadline: on the ``time.monotonic`` clock.
        stopped: called at every attempt that finds no file; True ends the wait.

    Raises:
        RendezvousTimeoutError: the deadline has passed, or the wait was stopped.
    """

    def published() -> Optional[Dict[str, Any]]:
        facts = read(path, token)
        if facts is None:
            if stopped():
                raise RendezvousTimeoutError("stopped while waiting for rank 0")
            _refresh(path.parent)
        return facts

    facts = poll_until(published, deadline, POLL_S, longest_s=LONGEST_POLL_S, jitter=True)
    if facts is None:
        raise RendezvousTimeoutError(f"rank 0 did not publish {path} in time")
    return facts


def _refresh(directory: Path) -> None:
    """Listing a directory makes an NFS client drop what it believes about a missing name.

    The directory itself may not be there yet: rank 0 makes it.
    """
    with contextlib.suppress(OSError), os.scandir(str(directory)) as entries:
        next(entries, None)


def rank_0_address(environ: Mapping[str, str]) -> Optional[Tuple[str, int]]:
    """Rank 0's name and port, if the launcher names them; None: supervisors meet by a file."""
    host, _, port = environ.get(VARIABLE, "").rpartition(":")
    return (host, int(port)) if host else None


def meet(
    where: Tuple[str, int],
    token: str,
    deadline: float,
    stop: StopRequest,
    *,
    rank: int,
    order: int,
    facts: Dict[str, Any],
    word_s: float = 0.0,
) -> Optional[Connection]:
    """The connection to rank 0; None when rank 0 has finished this run.

    Args:
        where: rank 0's name and port.
        token: of this start of the job.
        deadline: on the ``time.monotonic`` clock.
        stop: a request to end ends the wait.
        rank: of this node.
        order: the run's place in its block; -1: before the first.
        facts: about this node.
        word_s: seconds that rank 0, once connected, has for its first message, even beyond the deadline.

    Raises:
        RendezvousTimeoutError: rank 0 didn't show up, or the wait was stopped.
    """
    why = ""

    def met() -> Union[Connection, str, None]:
        """The connection, or OVER or STOP where rank 0 says so; None: not yet."""
        nonlocal why
        if stop.asked():
            raise RendezvousTimeoutError("stopped while waiting for rank 0")
        try:
            connection = join(*where, token, rank=rank, order=order, facts=facts, timeout_s=CONNECT_S)
        except OSError as error:  # the name doesn't resolve yet, or the port is closed
            why = str(error)
            return None
        kind = _kind_of_first_message(connection, max(deadline, time.monotonic() + word_s), stop)
        if kind == FACTS:
            return connection
        connection.close()
        why = "it closed the connection"
        return kind if kind in (OVER, STOP) else None

    meeting = poll_until(met, deadline, POLL_S, longest_s=LONGEST_POLL_S, jitter=True)
    if meeting is None:
        raise RendezvousTimeoutError("rank 0 did not answer as {}:{} in time: {}".format(*where, why))
    return None if isinstance(meeting, str) else meeting


def _kind_of_first_message(connection: Connection, deadline: float, stop: StopRequest) -> str:
    messages = connection.receive()
    while not messages and connection.open and not stop.asked() and time.monotonic() < deadline:
        connection.beat()
        stop.wait([connection.sock], IDLE_S)
        messages = connection.receive()
    connection.put_back(messages[1:])
    return str(messages[0].get("kind", "")) if messages else ""
