"""How the supervisors of one run meet without a shared file system: rank 0's name and port.

The name resolves when rank 0's pod has an address, and the port answers when its supervisor listens. Until then, and
while rank 0 is at an earlier run, callers try again. A caller of a run that rank 0 has finished is told that it is
over.
"""

from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

from gpubench.node.control_channel import FACTS, OVER, STOP, Connection, join
from gpubench.node.rendezvous import LONGEST_POLL_S, POLL_S, RendezvousTimeoutError
from gpubench.workloads.polling import poll_until

VARIABLE = "GPUBENCH_RENDEZVOUS"
CONNECT_S = 5.0


def place(environ: Mapping[str, str]) -> Optional[Tuple[str, int]]:
    """Rank 0's name and port, if the launcher names them; None: supervisors meet by a file."""
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
    """The connection to rank 0; None when rank 0 has finished this run.

    Args:
        where: rank 0's name and port.
        token: of this start of the job.
        deadline: on the ``time.monotonic`` clock.
        stopped: called at every attempt; True ends the wait.
        rank: of this node.
        order: the run's place in its block; -1: before the first.
        facts: about this node.

    Raises:
        RendezvousTimeoutError: rank 0 didn't show up, or the wait was stopped.
    """
    why = ""

    def met() -> Union[Connection, str, None]:
        """The connection, or OVER or STOP where rank 0 says so; None: not yet."""
        nonlocal why
        if stopped():
            raise RendezvousTimeoutError("stopped while waiting for rank 0")
        try:
            connection = join(*where, token, rank=rank, order=order, facts=facts, timeout_s=CONNECT_S)
        except OSError as error:  # the name doesn't resolve yet, or the port is closed
            why = str(error)
            return None
        kind = _kind_of_first_message(connection, deadline, stopped)
        if kind == FACTS:
            return connection
        connection.close()
        why = "it closed the connection"
        return kind if kind in (OVER, STOP) else None

    found = poll_until(met, deadline, POLL_S, longest_s=LONGEST_POLL_S, jitter=True)
    if found is None:
        raise RendezvousTimeoutError("rank 0 did not answer as {}:{} in time: {}".format(*where, why))
    return None if isinstance(found, str) else found


def _kind_of_first_message(connection: Connection, deadline: float, stopped: Callable[[], bool]) -> str:
    """Empty where none came."""

    def received() -> bool:
        connection.beat()
        messages = connection.receive()
        connection.put_back(messages)
        return bool(messages) or not connection.open or stopped()

    poll_until(received, deadline, POLL_S)
    messages = connection.receive()
    connection.put_back(messages[1:])
    return str(messages[0].get("kind", "")) if messages else ""
