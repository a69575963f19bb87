"""``node.pyz cluster``: one node of a standing cluster, from the job script."""

import os
import sys
from pathlib import Path
from typing import Optional

from gpubench.node.build import WrongImageError, check_build
from gpubench.node.cluster_head import END_VARIABLE, ClusterEndedError, ClusterHead
from gpubench.node.cluster_node import follow_head
from gpubench.node.cluster_state import ClusterStateFile
from gpubench.node.gpu import resolve
from gpubench.node.node import NotCleanError, RunNode, unused_segments
from gpubench.node.rank import RankError, find_rank
from gpubench.node.rendezvous import RendezvousTimeoutError
from gpubench.node.stop import StoppedError, StopRequest
from gpubench.spec import RunSpec
from gpubench.spec.cluster import TOKEN_FILE, ClusterSpec
from gpubench.spec.run import RANK0
from gpubench.workloads import clock
from gpubench.workloads.process_reaper import CLUSTER_VARIABLE, end_marked_below

EXIT_OK = 0
EXIT_NODE = 40
STOP_AT_EOF_VARIABLE = "GPUBENCH_STOP_AT_EOF"


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
    stop = StopRequest(watch_stdin=STOP_AT_EOF_VARIABLE in os.environ)
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
