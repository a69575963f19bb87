"""The state of the jobs, from the site's scheduler, and of the nodes, from rank 0."""

import logging
from collections.abc import Iterator, Mapping

from gpubench.clusters.jobs import job_state
from gpubench.errors import IncompleteError
from gpubench.model.cluster import ClusterJob
from gpubench.model.text import counted
from gpubench.node.spec.cluster import ENDED, JOINED, READY, SCHEDULER_FILE, ClusterState
from gpubench.schedulers import JobState
from gpubench.store.clusters import Cluster

_log = logging.getLogger(__name__)

EVENTS = 5


def show_status(cluster: Cluster) -> None:
    """Log the cluster's state. Raises IncompleteError: it isn't ready, has ended, or something of it is missing."""
    states = {job.job: job_state(cluster, job) for job in cluster.jobs}
    state = cluster.state()
    for line in status_lines(cluster, states, state):
        _log.info(line)
    wrong = trouble(cluster, states, state)
    if wrong:
        name = cluster.record.name
        raise IncompleteError(
            f"cluster {name}: {wrong}", then=f"gpubench cluster stop {name}" if cluster.standing else ""
        )


def status_lines(cluster: Cluster, states: Mapping[str, JobState], state: ClusterState | None) -> Iterator[str]:
    """The cluster, its jobs, what went wrong."""
    record = cluster.record
    nodes = [node for node in state.nodes if node["state"] == JOINED] if state else []
    size = f"{state.connected if state else 0} of {cluster.planned} workers on {counted(len(nodes), 'node')}"
    phase = "stopped" if not cluster.standing else phase_of(cluster, states, state)
    yield f"cluster {record.name}: {phase}, {size}; site {record.site.name}, {record.variant.ucx}, {record.protocol}"
    for job in cluster.jobs:
        yield _job_line(job, states[job.job], retired=cluster.retired(job, state))
        if state:
            yield from (f"  {line.partition(': ')[2]}" for line in time_lines(state, job.job))
    if state:
        for event in state.events[-EVENTS:]:
            yield f"{str(event['at'])[:19]}Z {event['what']}"
        if phase == READY:
            yield f"scheduler: {state.address}, file {record.directory}/{SCHEDULER_FILE}"


def time_lines(state: ClusterState, job: str) -> list[str]:
    """How long the job's workers took to register."""
    times = state.jobs.get(job, {})
    moments = [("first", "first_worker"), ("half", "half_workers"), ("all", "all_workers")]
    reached = [f"{word} after {times[key]:.1f} s" for word, key in moments if key in times]
    return (
        [f"job {job}: {counted(int(times['workers']), 'worker')} registered, {', '.join(reached)}"] if reached else []
    )


def phase_of(cluster: Cluster, states: Mapping[str, JobState], state: ClusterState | None) -> str:
    """``waiting starting ready ended``: the site's scheduler knows best whether it still runs."""
    leader = states[cluster.jobs[0].job]
    if leader.phase == "pending":
        return "waiting in the queue"
    if leader.over:
        return ENDED
    return state.phase if state else "starting"


def trouble(cluster: Cluster, states: Mapping[str, JobState], state: ClusterState | None) -> str:
    """What is wrong, in one phrase; empty if nothing is."""
    if not cluster.standing:
        return "it has been stopped"
    phase = phase_of(cluster, states, state)
    if phase == ENDED:
        reason = state.reason if state and state.phase == ENDED else ""
        return f"it has ended: {reason or _end_state(states[cluster.jobs[0].job])}"
    if phase != READY or state is None:
        return f"it is {phase}"
    for job in cluster.jobs:
        if cluster.retired(job, state) or states[job.job].alive:
            continue
        doubt = states[job.job].doubt
        return f"job {job.job}: {doubt}" if doubt else f"job {job.job} has ended: {_end_state(states[job.job])}"
    if state.connected < cluster.planned:
        return f"{state.connected} of {cluster.planned} workers are connected"
    return ""


def _job_line(job: ClusterJob, state: JobState, *, retired: bool) -> str:
    what = f"{job.nodes} node{'' if job.nodes == 1 else 's'}{' with the scheduler' if job.leads else ''}"
    if retired and not job.leads:
        return f"job {job.job} ({state.job_id}): {what}, given back"
    standing = " on ".join(part for part in (state.word or state.phase, state.hosts) if part)
    why = f": {state.reason}" if not state.over and state.reason else ""
    return f"job {job.job} ({state.job_id}): {what}, {state.end or standing + why}"


def _end_state(state: JobState) -> str:
    return state.end or state.reason or state.word or "without a message"
