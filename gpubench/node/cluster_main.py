"""``node.pyz cluster``: one node of a standing cluster, from the job script."""

import math
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, Optional, Set, Tuple

from gpubench.node import rendezvous
from gpubench.node.build import WrongImageError, check_build
from gpubench.node.cluster_head import END_VARIABLE, TICK_S, ClusterEndedError, ClusterHead, time_left
from gpubench.node.cluster_state import ClusterStateFile
from gpubench.node.control_channel import Connection, join
from gpubench.node.gpu import resolve
from gpubench.node.node import NotCleanError, RunNode, unused_segments
from gpubench.node.rank import RankError, find_rank
from gpubench.node.rendezvous import RendezvousTimeoutError
from gpubench.node.stop import EXIT_NODE, EXIT_OK, IDLE_S, StoppedError, StopRequest
from gpubench.spec import RunSpec
from gpubench.spec.cluster import TOKEN_FILE, ClusterSpec
from gpubench.spec.run import RANK0
from gpubench.workloads import clock
from gpubench.workloads.polling import poll_until
from gpubench.workloads.process_reaper import CLUSTER_VARIABLE, end_marked_below

SCHEDULER_ONLY_RANK = -1
"""Rank of a supervisor that has the scheduler and runs on none of the nodes; further jobs continue the nodes' ranks."""


def run(
    spec_path: Path,
    rank: Optional[int],
    skip: str = "",
    *,
    scheduler_only: bool = False,
    lasts_s: Optional[float] = None,
) -> int:
    """Run this node's part of the cluster until it ends; ``scheduler_only``: a supervisor that has only the scheduler.

    Returns the exit code. ``lasts_s``: in a pod, where no script says when the job ends, seconds until its end. A node
    whose workers died is no failure in a pod, because Kubernetes would end every other pod of the job too.

    Raises:
        OSError: the token or the spec can't be read.
        RankError: the launcher names no rank, or the job has its scheduler on rank 0.
    """
    if lasts_s is not None:
        os.environ[END_VARIABLE] = str(int(clock.now() + lasts_s))
    cluster, spec = read(spec_path)
    directory = spec_path.parents[3]
    if skip:
        ClusterStateFile(directory, cluster.cluster).end(skip)
        return EXIT_NODE
    if scheduler_only and spec.scheduler_on == RANK0:
        raise RankError("this job has no scheduler apart: --role scheduler has nothing to do")
    here = SCHEDULER_ONLY_RANK if scheduler_only else cluster.first_rank + find_rank(rank, os.environ, spec.nodes)
    token = (directory / TOKEN_FILE).read_text(encoding="ascii").strip()
    stop = StopRequest()
    node = RunNode(spec, spec_path.parent / cluster.run, directory, rank=here, token=token)
    leads = scheduler_only or (here == 0 and spec.scheduler_on == RANK0)
    head = ClusterHead(node, cluster, directory, token, stop) if leads else None
    code, reason = EXIT_NODE, "it failed"
    try:
        check_build(spec)
        node.ensure_clean()
        reason = head.run() if head else follow_head(node, cluster, directory, token, stop)
        code = EXIT_OK
    except ClusterEndedError as error:
        code, reason = (EXIT_OK if lasts_s is not None and not head else EXIT_NODE), str(error)
    except (
        NotCleanError,
        OSError,
        RendezvousTimeoutError,
        StoppedError,
        WrongImageError,
    ) as error:
        reason = str(error)
    finally:
        node.stop()
        if head:
            head.end(reason)
        _keep_logs(node, spec_path.parents[1])
        node.remove()
    who = "the scheduler's supervisor" if scheduler_only else f"rank {here}"
    print(f"gpubench cluster, {who}: {reason}", file=sys.stderr)  # noqa: T201
    return code


def follow_head(node: RunNode, cluster: ClusterSpec, directory: Path, token: str, stop: StopRequest) -> str:
    """Run this node's workers until rank 0 says stop or is gone; returns why it ended.

    Who is asked to end, or whose job's time is nearly over, first has rank 0 retire its workers: what they hold moves.

    Raises:
        RendezvousTimeoutError: there is no cluster to join.
        ClusterEndedError: every worker of this node died.
    """
    began = time.monotonic()
    node.start(node.workers())
    path = rendezvous.path_for(directory, cluster.cluster, token)
    said = {"job": cluster.job, "host": node.facts["host"], "planned": node.spec.workers_per_node, "began": began}
    connection, scheduler = _meet(node, path, token, stop, said)
    try:
        node.tell_address(scheduler)
        reason = _until_stop(node, connection, stop)
    finally:
        node.stop()
    connection.send({"kind": "final_report"})
    connection.finish(node.spec.deadlines.stop_s)
    return reason


def _meet(node: RunNode, path: Path, token: str, stop: StopRequest, said: Dict[str, Any]) -> Tuple[Connection, str]:
    """The connection to rank 0 and the scheduler's address. A rank 0 that doesn't answer may be a file that is old."""
    deadline = time.monotonic() + node.spec.deadlines.start_s

    def met() -> Optional[Tuple[Connection, str]]:
        stop.check()
        facts = rendezvous.wait(path, token, deadline, stop.asked)
        hello = {**said, "age_s": round(time.monotonic() - said["began"], 3)}
        host, port = facts["server"]
        try:
            return join(host, port, token, rank=node.rank, facts=hello, timeout_s=10.0), str(facts["scheduler"])
        except OSError:
            if time.monotonic() > deadline:
                raise
            return None

    found = poll_until(met, math.inf, TICK_S, longest_s=IDLE_S, jitter=True)
    assert found is not None
    return found


def _until_stop(node: RunNode, connection: Connection, stop: StopRequest) -> str:
    told: Set[str] = set()
    leave_by = float("inf")
    grace = node.spec.deadlines.stop_s
    while True:
        connection.beat()
        for message in connection.receive():
            if message["kind"] == "stop":
                return "rank 0 said stop"
        if not connection.open or connection.silence() > node.spec.deadlines.silence_s:
            return "rank 0 is gone"
        reason = stop.reason if stop.asked() else "the job's time is nearly over" if time_left() < 2 * grace else None
        if reason and leave_by == float("inf"):
            leave_by = time.monotonic() + grace / 2
            connection.send({"kind": "leaving", "reason": reason})
        if time.monotonic() > leave_by:
            return str(reason)
        for child in node.children:
            if child.code is not None and child.name not in told:
                told.add(child.name)
                if child.code != 0 or leave_by == float("inf"):
                    connection.send({"kind": "died", "cause": child.cause()})
        if len(told) == len(node.children) and all(child.code for child in node.children):
            raise ClusterEndedError("every worker of this node died")
        stop.wait([connection.sock], TICK_S if node.starting() else IDLE_S)


def clean(directory: Path) -> None:
    """End what is left on this machine of a cluster whose supervisors were killed, with its shared memory."""
    end_marked_below(CLUSTER_VARIABLE, f"{directory.resolve()}:")
    for path in unused_segments():
        path.unlink()


def read(spec_path: Path) -> "tuple[ClusterSpec, RunSpec]":
    """Read the job's cluster spec and its run spec; raises SpecError, OSError."""
    cluster = ClusterSpec.parse(spec_path.read_text(encoding="utf-8"))
    path = spec_path.parent / cluster.run
    spec = RunSpec.parse(path.read_text(encoding="utf-8"), str(path))
    return cluster, RunSpec(**{**vars(spec), "device": resolve(spec.device)})


def _keep_logs(node: RunNode, job_dir: Path) -> None:
    """Write the last lines of every process beside the job's own log."""
    folder = job_dir / "logs"
    folder.mkdir(exist_ok=True)
    for name, text in node.logs(whole=False).items():
        (folder / name.replace("/", "-")).write_text(text + "\n", encoding="utf-8")
