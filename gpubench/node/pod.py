"""The containers of a pod of an Indexed Job: each is one step of a block on this node, in a process of its own.

``arrive`` waits until every node's pod is there, ``run`` runs one variant, ``end`` reports the result. The files that
one leaves for the next are in the pod's own directory. Only rank 0's pod fails the Job: Kubernetes ends every other
pod of a failed Job at once, and the results of a block may be in the log of rank 0's.
"""

import argparse
import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from typing import Callable, List

from gpubench.node import rendezvous
from gpubench.node.control_channel import FACTS, STOP, ControlServer
from gpubench.node.rank import find_rank
from gpubench.node.rendezvous import TOKEN_VARIABLE, RendezvousTimeoutError
from gpubench.node.spec import RunSpec
from gpubench.node.spec.log_transport import FILES, encode
from gpubench.node.spec.plain import SpecError
from gpubench.node.spec.records import EXIT_NODE, EXIT_OK
from gpubench.node.stop import IDLE_S, StopRequest
from gpubench.node.writer.atomic import write_atomic

DIRECTORY_VARIABLE = "GPUBENCH_POD"
STATE_FILE = "state.json"
BEFORE_THE_FIRST = -1
FINISH_S = 5.0
Main = Callable[[List[str]], int]


@dataclasses.dataclass
class State:
    """What the containers of this pod did so far.

    Args:
        code: exit code of the first that failed; the ones behind it run nothing.
        reason: why nothing is run any more.
        told: whether rank 0 was told that this node has failed.
        alone: rank 0 never came. Then this node fails the job, which would hold all nodes until its time is over.
    """

    code: int = EXIT_OK
    reason: str = ""
    told: bool = False
    alone: bool = False


def step(options: argparse.Namespace, main: Main) -> int:
    """Do one step; the exit code of the container.

    Raises:
        SpecError: no directory for the pod, or a run spec that can't be read.
        RankError: no rank.
    """
    directory = os.environ.get(DIRECTORY_VARIABLE)
    if not directory:
        raise SpecError(f"gpubench pod needs {DIRECTORY_VARIABLE}, a directory that only this pod sees")
    path = Path(directory) / STATE_FILE
    state = State(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else State()
    if options.step == "end":
        return _end(state, find_rank(options.rank, os.environ, sys.maxsize))
    spec = RunSpec.parse(Path(options.spec).read_text(encoding="utf-8"), options.spec)
    rank = find_rank(options.rank, os.environ, spec.nodes)
    if options.step == "arrive":
        _arrive(state, spec, rank, options.deadline)
    else:
        _run(state, spec, rank, options, main)
    write_atomic(path, json.dumps(dataclasses.asdict(state)).encode("utf-8"))
    return EXIT_OK


def _arrive(state: State, spec: RunSpec, rank: int, deadline_s: float) -> None:
    """Wait for all nodes: a pod that isn't scheduled, or whose image isn't there, must not look like a slow variant."""
    stop = StopRequest(watch_stdin=False)
    deadline = time.monotonic() + deadline_s
    token = os.environ.get(TOKEN_VARIABLE, "")
    where = rendezvous.rank_0_address(os.environ)
    if spec.nodes == 1 or where is None:
        return
    if rank == 0:
        server = ControlServer(rendezvous.EVERY_ADDRESS, token, port=where[1], order=BEFORE_THE_FIRST)
        missing = _wait_for_all(server, spec.nodes, deadline, stop)
        if missing:
            state.code = EXIT_NODE
            ranks = ", ".join(map(str, missing))
            missed = f"did not start within {deadline_s:.0f} s, or could not reach port {where[1]} here"
            state.reason = f"the pod of node rank {ranks} {missed}"
    else:
        word_s = deadline_s + FINISH_S  # rank 0 may have come last, and waits as long as this node
        try:
            met = rendezvous.meet(
                where, token, deadline, stop, rank=rank, order=BEFORE_THE_FIRST, facts={}, word_s=word_s
            )
            state.reason = "" if met else "another pod of the job did not start in time"
        except RendezvousTimeoutError as error:
            state.reason, state.alone = str(error), True
        state.code, state.told = (EXIT_NODE, True) if state.reason else (EXIT_OK, False)
    _say(state.reason or f"all {spec.nodes} nodes are here")


def _wait_for_all(server: ControlServer, nodes: int, deadline: float, stop: StopRequest) -> List[int]:
    """The ranks that didn't connect; the others are told whether to continue."""
    others = set(range(1, nodes))
    while others - set(server.connections) and time.monotonic() < deadline and not stop.asked():
        stop.wait([server], IDLE_S)
        server.poll(0)
    missing = sorted(others - set(server.connections))
    server.broadcast({"kind": STOP if missing else FACTS})
    for connection in server.connections.values():
        connection.finish(FINISH_S)
    server.close()
    return missing


def _run(state: State, spec: RunSpec, rank: int, options: argparse.Namespace, main: Main) -> None:
    if state.code and rank:
        _say(state.reason)
        _tell(state, spec, rank)
        return
    skip = state.reason or options.skip
    arguments = ["run", "--spec", options.spec, "--rank", str(rank)]
    code = main([*arguments, *(["--skip", skip] if skip else [])])
    if code and not state.code:
        state.code = code
        state.reason = (
            f"the run before it ended with exit code {code}{': the node is not clean' if code == EXIT_NODE else ''}"
        )
    if rank == 0:
        _print_frames(spec.run)


def _tell(state: State, spec: RunSpec, rank: int) -> None:
    """Have rank 0 end a run as skipped if this node can't take part in it; otherwise it would wait for this node."""
    where = rendezvous.rank_0_address(os.environ)
    if state.told or where is None:
        return
    stop = StopRequest(watch_stdin=False)
    token, deadline = os.environ.get(TOKEN_VARIABLE, ""), time.monotonic() + spec.deadlines.start_s
    try:
        met = rendezvous.meet(where, token, deadline, stop, rank=rank, order=spec.order, facts={})
    except RendezvousTimeoutError as error:
        _say(str(error))
        return
    if met is not None:
        met.send({"kind": "stopped", "reason": state.reason})
        met.finish(spec.deadlines.stop_s)
        state.told = True


def _print_frames(run: str) -> None:
    """What a run left, or every one, as lines of this container's log."""
    for directory in sorted((Path(os.environ["OUTDIR"]) / "runs").glob(f"{run}-*")):
        files = {name: (directory / name).read_bytes() for name in FILES if (directory / name).exists()}
        for line in encode(directory.name, files):
            print(line)  # noqa: T201 - the log is the way home
    sys.stdout.flush()


def _end(state: State, rank: int) -> int:
    _say(state.reason or "every run has ended")
    if rank == 0:
        _print_frames("*")  # the kubelet may have turned a log over between a run's lines and our look
    return state.code if rank == 0 or state.alone else EXIT_OK


def _say(text: str) -> None:
    print(f"gpubench pod: {text}", file=sys.stderr, flush=True)  # noqa: T201
