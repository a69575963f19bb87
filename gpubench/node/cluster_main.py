"""``node.pyz cluster``: one node of a standing cluster, from the job script."""

import argparse
import dataclasses
import os
import sys
from pathlib import Path

from gpubench.node.cluster_follower import follow_head
from gpubench.node.cluster_head import ClusterHead
from gpubench.node.cluster_state import END_VARIABLE, ClusterEndedError, ClusterStateFile
from gpubench.node.gpu import resolve
from gpubench.node.image import WrongImageError, check_build
from gpubench.node.rank import RankError, find_rank
from gpubench.node.rendezvous import RendezvousTimeoutError
from gpubench.node.run_node import NotCleanError, RunNode, unused_segments
from gpubench.node.spec import RunSpec
from gpubench.node.spec.cluster import TOKEN_FILE
from gpubench.node.spec.records import EXIT_NODE, EXIT_OK
from gpubench.node.spec.run import RANK0
from gpubench.node.stop import StoppedError, StopRequest
from gpubench.node.workloads import clock
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE, end_marked

SCHEDULER_ONLY_RANK = -1
"""Rank of a supervisor that has the scheduler and runs on none of the nodes; further jobs continue the nodes' ranks."""


def run(options: argparse.Namespace) -> int:
    """Run this node's part of the cluster until it ends, or clean up; returns the exit code.

    The spec, ``jobs/<job>/specs/nodes.json`` in the cluster's directory, says what every node's processes are like.
    Ranks are counted through all jobs, and the first job has the scheduler. A node whose workers died is no failure in
    a pod (where no script says when the job ends, but ``lasts``), because Kubernetes would end every other pod of the
    job too.

    Raises:
        OSError: the token or the spec can't be read.
        RankError: the launcher names no rank, or the job has its scheduler on rank 0.
    """
    spec_path = Path(options.spec).resolve()
    directory = spec_path.parents[3]
    if options.clean:
        clean(directory)
        return EXIT_OK
    scheduler_only, is_pod = options.role == "scheduler", options.lasts is not None
    if is_pod:
        os.environ[END_VARIABLE] = str(int(clock.now() + options.lasts))
    spec = RunSpec.parse(spec_path.read_text(encoding="utf-8"), str(spec_path))
    spec = dataclasses.replace(spec, device=resolve(spec.device))
    if options.skip:
        ClusterStateFile(directory, spec.campaign).end(options.skip)
        return EXIT_NODE
    if scheduler_only and spec.scheduler_on == RANK0:
        raise RankError("this job has no scheduler apart: --role scheduler has nothing to do")
    here = (
        SCHEDULER_ONLY_RANK if scheduler_only else options.first_rank + find_rank(options.rank, os.environ, spec.nodes)
    )
    token = (directory / TOKEN_FILE).read_text(encoding="ascii").strip()
    stop = StopRequest()
    node = RunNode(spec, spec_path, directory, rank=here, token=token)
    leads = scheduler_only or (here == 0 and spec.scheduler_on == RANK0)
    head = ClusterHead(node, directory, token, stop) if leads else None
    code, reason = EXIT_NODE, "it failed"
    try:
        check_build(spec)
        node.ensure_clean()
        reason = head.run() if head else follow_head(node, directory, token, stop, further=options.first_rank > 0)
        code = EXIT_OK
    except ClusterEndedError as error:
        code, reason = (EXIT_OK if is_pod and not head else EXIT_NODE), str(error)
    except (NotCleanError, OSError, RendezvousTimeoutError, StoppedError, WrongImageError) as error:
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


def clean(directory: Path) -> None:
    """End what is left on this machine of a cluster whose supervisors were killed, with its shared memory."""
    end_marked(CLUSTER_VARIABLE, lambda mark: mark.startswith(f"{directory.resolve()}:"))
    for path in unused_segments():
        path.unlink()


def _keep_logs(node: RunNode, job_dir: Path) -> None:
    """Write the last lines of every process beside the job's own log."""
    folder = job_dir / "logs"
    folder.mkdir(exist_ok=True)
    for name, text in node.logs(whole=False).items():
        (folder / name.replace("/", "-")).write_text(text + "\n", encoding="utf-8")
