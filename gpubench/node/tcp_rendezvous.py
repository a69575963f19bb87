"""How the supervisors of one run meet without a shared file system: rank 0's name and port.

The name resolves once rank 0's pod has an address, the port answers once its supervisor listens: until then, and while
rank 0 is still at an earlier run, it is *not yet*. Who asks for a run that is behind rank 0 is told that it is over.
"""

import random
import time
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from gpubench.node.control_channel import FACTS, OVER, STOP, Connection, join
from gpubench.node.rendezvous import LONGEST_POLL_S, POLL_S, RendezvousTimeoutError

VARIABLE = "GPUBENCH_RENDEZVOUS"
CONNECT_S = 5.0


def place(environ: Mapping[str, str]) -> Optional[Tuple[str, int]]:
    """Rank 0's name and port, where the launcher says so; None: by a file."""
    host, _, port = environ.get(VARIABLE, "").rpartition(":")
    return (host, int(port)) if host else None


def meet(
    where: Tuple[str, int],
    token: str,
    deadline: float,
    stopped: Callable[[], bool],
    *,
    rank: int,
    order: int,
    facts: Dict[str, Any],
) -> Optional[Connection]:
    """The line to rank 0; None when rank 0 has done with this run.

    Args:
        where: rank 0's name and port.
        token: of this start of the job.
        deadline: on the ``time.monotonic`` clock.
        stopped: asked at every look; True ends the wait.
        rank: of this node.
        order: the run's place in its block; -1: before the first.
        facts: about this node.

    Raises:
        RendezvousTimeoutError: rank 0 didn't show up, or the wait was stopped.
    """
    pause, why = POLL_S, "it was never asked"
    while not stopped():
        try:
            line = join(*where, token, rank=rank, order=order, facts=facts, timeout_s=CONNECT_S)
        except OSError as error:  # no such name yet, nobody listens yet
            why = str(error)
        else:
            answer = _answer(line, deadline, stopped)
            if answer.get("kind") == FACTS:
                return line
            line.close()
            if answer.get("kind") in (OVER, STOP):
                return None
            why = "it closed the line"
        if time.monotonic() > deadline:
            raise RendezvousTimeoutError("rank 0 did not answer as {}:{} in time: {}".format(*where, why))
        time.sleep(pause * (0.5 + random.random()))
        pause = min(pause * 1.5, LONGEST_POLL_S)
    raise RendezvousTimeoutError("stopped while waiting for rank 0")


def _answer(line: Connection, deadline: float, stopped: Callable[[], bool]) -> Dict[str, Any]:
    """The first message; empty when none came."""
    while line.open and not stopped() and time.monotonic() < deadline:
        line.beat()
        messages = line.receive()
        if messages:
            line.put_back(messages[1:])
            return messages[0]
        time.sleep(POLL_S)
    return {}
