"""Further jobs that join a cluster, and jobs given back with nothing lost."""

import json
import logging
import secrets
from collections.abc import Sequence

from gpubench.campaign.interrupts import LOOK_S
from gpubench.clusters.jobs import job_state, put_away, submit_job, wait_for
from gpubench.clusters.status import phase_of, time_lines
from gpubench.errors import IncompleteError, UsageError
from gpubench.files import write_atomically
from gpubench.model.cluster import ClusterJob
from gpubench.model.text import counted
from gpubench.node.spec.cluster import ENDED, GONE, JOINED, READY, REQUESTS, RETIRED, ClusterState
from gpubench.polling import poll_until
from gpubench.schedulers import SCHEDULERS
from gpubench.store.clusters import Cluster

_log = logging.getLogger(__name__)


def grow(cluster: Cluster, nodes: int, limit_s: float | None, deadline: float) -> None:
    """One more job of ``nodes`` nodes, whose workers join.

    Raises:
        UsageError: there is nothing to join.
        IncompleteError: it ended, or its workers aren't all there at the deadline.
    """
    _require_ready(cluster)
    job = cluster.add_job(nodes, limit_s or cluster.record.limit_s)
    try:
        submit_job(cluster, job, deadline)
    except BaseException:
        if job_state(cluster, job).phase == "unsubmitted":
            cluster.retire(job)  # its workers will never come: nothing may wait for them
        raise
    workers = nodes * cluster.record.site.layout.workers

    def joined(state: ClusterState) -> bool:
        if state.phase == ENDED:
            raise IncompleteError(f"the cluster has ended: {state.reason}")
        return sum(int(node["connected"]) for node in state.nodes if node["job"] == job.job) >= workers

    state = wait_for(cluster, job, deadline, joined)
    for line in time_lines(state, job.job):
        _log.info(line)
    _log.info(_connected(state.connected))


def _connected(workers: int) -> str:
    return f"{counted(workers, 'worker')} {'is' if workers == 1 else 'are'} connected"


def shrink(cluster: Cluster, nodes: int, deadline: float) -> None:
    """Give back whole jobs of ``nodes`` nodes together: their workers' data moves to the others, then the jobs end.

    Raises:
        UsageError: no such jobs.
        IncompleteError: there is no place for a node's data, or it didn't move before the deadline; the node stays.
    """
    _require_ready(cluster)
    chosen = choose(_further(cluster), nodes)
    workers = _leave(cluster, [job for job in chosen if job_state(cluster, job).phase == "running"], deadline)
    if workers:
        _log.info(f"{counted(workers, 'worker')} retired, their data is on the others")
    for job in chosen:
        _end(cluster, job)
        put_away(cluster, job)
        cluster.retire(job)
        _log.info(f"job {job.job}: {counted(job.nodes, 'node')} given back")
    state = cluster.state()
    _log.info(_connected(state.connected if state else 0))


def choose(jobs: Sequence[ClusterJob], nodes: int) -> list[ClusterJob]:
    """Jobs with ``nodes`` nodes together, few and new ones first; raises UsageError where there are none."""
    newest = sorted(jobs, key=lambda job: job.first_rank, reverse=True)
    chosen = _fewest([job.nodes for job in newest], nodes)
    if chosen:
        return [newest[at] for at in chosen]
    if not jobs:
        raise UsageError("only the job with the scheduler is left", then="gpubench cluster stop ends it")
    has = ", ".join(f"{job.job} ({job.nodes})" for job in newest)
    raise UsageError(
        f"only whole jobs can be given back, and no set of jobs has {counted(nodes, 'node')} in total: there is {has}",
        then="the job with the scheduler stays; gpubench cluster stop ends all",
    )


def _fewest(sizes: Sequence[int], total: int) -> list[int]:
    """The fewest positions in ``sizes`` that add up to ``total`` (the first such set); empty if there are none."""
    fewest: dict[int, list[int]] = {0: []}
    for at, size in enumerate(sizes):
        for before, chosen in list(fewest.items()):
            shortest = fewest.get(before + size)
            if before + size <= total and (
                shortest is None or (len(chosen) + 1, [*chosen, at]) < (len(shortest), shortest)
            ):
                fewest[before + size] = [*chosen, at]
    return fewest.get(total, [])


def _further(cluster: Cluster) -> list[ClusterJob]:
    state = cluster.state()
    kept = [job for job in cluster.jobs if not job.leads and not cluster.retired(job, state)]
    return [job for job in kept if job_state(cluster, job).alive]


def _require_ready(cluster: Cluster) -> None:
    states = {cluster.jobs[0].job: job_state(cluster, cluster.jobs[0])}
    phase = phase_of(cluster, states, cluster.state())
    if phase != READY or not cluster.standing:
        name = cluster.record.name
        raise UsageError(f"cluster {name} isn't ready", then=f"gpubench cluster status {name} says why")


def _leave(cluster: Cluster, jobs: Sequence[ClusterJob], deadline: float) -> int:
    """Have the nodes of these jobs move their data to the others, and end; returns the number of their workers.

    Rank 0 is asked through the directory that both see, and answers with the nodes' states.
    """
    names, state = {job.job for job in jobs}, cluster.state()
    here = [node for node in state.nodes if node["job"] in names and node["state"] == JOINED] if state else []
    ranks, request = [node["rank"] for node in here], secrets.token_hex(8)
    if not ranks:
        return 0

    def answered(state: ClusterState) -> bool:
        nodes = [node for node in state.nodes if node["rank"] in ranks]
        return all(
            node["state"] in (RETIRED, GONE) or (node["state"] == JOINED and node.get("request") == request)
            for node in nodes
        )

    path = cluster.directory / REQUESTS / f"{request}.json"
    write_atomically(path, json.dumps({"leave": ranks}))
    try:
        state = wait_for(cluster, cluster.jobs[0], deadline, answered, late="not all nodes have left yet")
    finally:
        path.unlink(missing_ok=True)
    stay = [node["rank"] for node in state.nodes if node["rank"] in ranks and node["state"] == JOINED]
    if stay:
        raise IncompleteError(
            f"{state.events[-1]['what']}; {counted(len(stay), 'node')} of {len(ranks)} not given back",
            then="the other workers may have too little memory for their data",
        )
    return sum(int(node["connected"]) for node in here)


def _end(cluster: Cluster, job: ClusterJob) -> None:
    """Wait until a job whose supervisors were told to end has ended; otherwise cancel it."""
    state = poll_until(
        lambda: job_state(cluster, job),
        lambda state: state.phase != "running",
        interval_s=LOOK_S,
        timeout_s=cluster.record.site.limits.stop,
    )
    if not state.over:
        SCHEDULERS[cluster.record.site.scheduler].cancel(cluster.job_dir(job))
