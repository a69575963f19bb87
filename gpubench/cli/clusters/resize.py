"""``gpubench cluster grow`` and ``shrink``: further jobs that join, and jobs given back with nothing lost.

``gpubench cluster status``: the state of the jobs, from the site's scheduler, and of the nodes, from rank 0.
"""

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.campaign.interrupts import LOOK_S, interrupts
from gpubench.cli.clusters.jobs import job_state, put_away, submit_job, wait_for
from gpubench.cli.clusters.start import time_lines
from gpubench.cli.say import say
from gpubench.errors import IncompleteError, InterruptedByUserError, UsageError
from gpubench.files import write_atomically
from gpubench.model.cluster import ClusterJob
from gpubench.model.text import counted
from gpubench.node.spec.cluster import ENDED, JOINED, READY, REQUESTS, SCHEDULER_FILE, ClusterState
from gpubench.polling import poll_until
from gpubench.schedulers import SCHEDULERS, JobState
from gpubench.store.clusters import Cluster


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
    wanted = nodes * cluster.record.site.layout.workers

    def joined(state: ClusterState) -> bool:
        if state.phase == ENDED:
            raise IncompleteError(f"the cluster has ended: {state.reason}")
        return sum(int(node["connected"]) for node in state.nodes if node["job"] == job.job) >= wanted

    state = wait_for(cluster, job, deadline, joined)
    for line in time_lines(state, job.job):
        say(line)
    say(_connected(state.connected))


def _connected(workers: int) -> str:
    return f"{counted(workers, 'worker')} {'is' if workers == 1 else 'are'} connected"


def shrink(cluster: Cluster, nodes: int, deadline: float) -> None:
    """Give back whole jobs of ``nodes`` nodes together: their workers' data moves to the others, then the jobs end.

    Raises:
        UsageError: no such jobs.
        IncompleteError: Dask didn't move everything, or not before the deadline; the jobs go on.
    """
    _require_ready(cluster)
    chosen = choose(_further(cluster), nodes)
    running = [job for job in chosen if job_state(cluster, job).phase == "running"]
    if running:
        answer = _ask(cluster, {"retire": [rank for job in running for rank in job.ranks]}, deadline)
        if answer.get("left") or "error" in answer:
            what = answer.get("error") or f"{counted(len(answer['left']), 'worker')} couldn't be retired"
            raise IncompleteError(
                f"{what}; no node was given back", then="the other workers may have too little memory for their data"
            )
        say(f"{counted(answer['retired'], 'worker')} retired, their data is on the others")
    for job in chosen:
        _end(cluster, job)
        put_away(cluster, job)
        cluster.retire(job)
        say(f"job {job.job}: {counted(job.nodes, 'node')} given back")
    state = cluster.state()
    say(_connected(state.connected if state else 0))


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
    import numpy as np

    if not 0 < total <= sum(sizes):
        return []
    none = len(sizes) + 1
    needed = np.full((none, total + 1), none, dtype=np.int32)  # by place and sum: how many it takes from there on
    needed[-1, 0] = 0
    for at in range(len(sizes) - 1, -1, -1):
        size = min(sizes[at], total + 1)
        needed[at] = needed[at + 1]
        needed[at, size:] = np.minimum(needed[at + 1, size:], needed[at + 1, : total + 1 - size] + 1)
    chosen: list[int] = []
    for at, size in enumerate(sizes):
        if needed[0, -1] < none and size <= total and needed[at, total] == needed[at + 1, total - size] + 1:
            chosen.append(at)
            total -= size
        if not total:
            break
    return chosen


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


def _ask(cluster: Cluster, request: dict[str, Any], deadline: float) -> dict[str, Any]:
    """Ask rank 0, through the directory that both see; its answer."""
    path = cluster.directory / REQUESTS / f"{secrets.token_hex(8)}.json"
    write_atomically(path, json.dumps(request))
    try:
        return _answer(cluster, path.with_suffix(".answer"), deadline)
    finally:
        path.unlink(missing_ok=True)


def _answer(cluster: Cluster, answer: Path, deadline: float) -> dict[str, Any]:
    leader = cluster.jobs[0]

    def look() -> dict[str, Any] | None:
        list(answer.parent.iterdir())  # an NFS client then drops what it believes of missing names
        if answer.exists():
            found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
            answer.unlink()
            return found
        if interrupted:
            raise InterruptedByUserError(f"stopped waiting by {interrupted[0]}")
        if time.monotonic() > deadline or job_state(cluster, leader).over:
            raise IncompleteError("rank 0 gave no answer", then="gpubench cluster status shows its state")
        return None

    with interrupts() as interrupted:
        return poll_until(look, lambda found: found is not None, interval_s=LOOK_S) or {}


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


EVENTS = 5


def show_status(cluster: Cluster) -> None:
    """Print the cluster's state. Raises IncompleteError: it isn't ready, has ended, or something of it is missing."""
    states = {job.job: job_state(cluster, job) for job in cluster.jobs}
    state = cluster.state()
    for line in status_lines(cluster, states, state):
        say(line)
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
    there = f"{state.connected if state else 0} of {cluster.planned} workers on {counted(len(nodes), 'node')}"
    phase = "stopped" if not cluster.standing else phase_of(cluster, states, state)
    yield f"cluster {record.name}: {phase}, {there}; site {record.site.name}, {record.variant.ucx}, {record.protocol}"
    for job in cluster.jobs:
        yield _job_line(job, states[job.job], retired=cluster.retired(job, state))
        if state:
            yield from (f"  {line.partition(': ')[2]}" for line in time_lines(state, job.job))
    if state:
        for event in state.events[-EVENTS:]:
            yield f"{str(event['at'])[:19]}Z {event['what']}"
        if phase == READY:
            yield f"scheduler: {state.address}, file {record.directory}/{SCHEDULER_FILE}"


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
    words = " on ".join(part for part in (state.word or state.phase, state.hosts) if part)
    why = f": {state.reason}" if not state.over and state.reason else ""
    return f"job {job.job} ({state.job_id}): {what}, {state.end or words + why}"


def _end_state(state: JobState) -> str:
    return state.end or state.reason or state.word or "without a message"
