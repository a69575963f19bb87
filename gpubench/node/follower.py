"""The supervisor of every other rank: workers, and a line to rank 0."""

import time

from gpubench.node import rendezvous
from gpubench.node.hub import Line, join
from gpubench.node.node import Node
from gpubench.node.stop import StoppedError, StopRequest

TICK_S = 0.1


def follow(node: Node, token: str, stop: StopRequest) -> None:
    """Run this node's workers until rank 0 says stop, dies or falls silent; leaves no process behind.

    Raises:
        RendezvousTimeoutError: rank 0 didn't show up.
        OSError: rank 0 doesn't answer.
        StoppedError: a signal ended it.
    """
    spec = node.spec
    path = rendezvous.path_for(node.runs_dir, spec.run, token)
    deadline = time.monotonic() + spec.deadlines.start_s
    facts = rendezvous.wait(path, token, deadline, lambda: stop.reason is not None)
    host, port = facts["hub"]
    line = join(host, port, token, rank=node.rank, facts=node.facts, timeout_s=spec.deadlines.start_s)
    try:
        node.start_workers(facts["scheduler"])
        whole_logs = _until_stop(node, line, stop)
    except StoppedError as stopped:
        line.send({"kind": "stopped", "reason": str(stopped)})
        raise
    finally:
        node.stop()
    line.send({"kind": "farewell", "node": node.report(), "logs": node.logs(whole=whole_logs)})
    line.finish(spec.deadlines.stop_s)


def _until_stop(node: Node, line: Line, stop: StopRequest) -> bool:
    """True when rank 0 wants whole logs."""
    told = False
    while True:
        stop.check()
        node.load.tick()
        line.beat()
        for message in line.receive():
            if message["kind"] == "stop":
                return bool(message["whole_logs"])
        if not line.open or line.silence() > node.spec.deadlines.silence_s:
            return True
        child = node.dead()
        if child is not None and not told:
            told = True
            line.send({"kind": "died", "cause": child.cause()})
        time.sleep(TICK_S)
