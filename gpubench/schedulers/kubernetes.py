"""Scheduler ``kubernetes``: kubectl apply, get, logs, delete, and nothing else; no operator.

A cluster has no queue that runs one Job after the other, and two at once would share the network, or each hold half of
the nodes that both need. So a job with others before it isn't submitted until those have ended: the front end that
looks (``status``, ``status --watch``, ``bench``) submits the next one, see ``poll``. So do campaigns that see each
other. What one pod says isn't the Job's word: a Job is over when Kubernetes says so.

* ``apply`` without ``--server-side`` keeps a copy of every object in an annotation, which may have 256 KiB only.
* A Job that has ended doesn't start again under its name, so the old objects are deleted before they are made anew.
* The pods of a failed Job that still run are deleted at once, those of a deleted Job too, with their logs: what rank 0
  has printed is fetched at every look, and before anything is deleted.
* ``activeDeadlineSeconds`` counts from the Job's creation, so it holds the time that pods may wait for each other too.
* A pod that waits says why in its conditions (``Unschedulable``) or in its containers (``ImagePullBackOff``); the Job
  only says that it is active. When it fails the pod may be gone, so the last words are remembered.
* A Job isn't ``Failed`` before its last pod is gone, and a pod on a node that doesn't answer is never gone by itself.
  Such a Job has ended for us; its pod keeps others of gpubench away from that node.
"""

import dataclasses
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.errors import MissingToolError, SchedulerError, UsageError
from gpubench.files import write_atomically
from gpubench.model.quantities import format_seconds
from gpubench.polling import poll_until
from gpubench.schedulers import pod_log_collector, submitted
from gpubench.schedulers.batch import Allocation, call, output_line, state_of_unclear_submit
from gpubench.schedulers.pods import INDEX, Pod
from gpubench.schedulers.state import JobState, declared
from gpubench.schedulers.submitted import Submitted

NAME = "kubernetes"
SUBMIT = "kubectl"
ALLOCATE = ""
ONE_AT_A_TIME = True
JOB_FILE = "job.yaml"
SEEN_FILE = "kubernetes.json"
"""What the last look saw, for when the objects are gone."""
OURS = "app.kubernetes.io/name=gpubench"
FAILING = "FailureTarget"
"""Condition of a Job that fails and whose pods are being deleted; ``Failed`` comes when the last one is gone."""
DISRUPTIONS = ("Preempted", "TaintManagerEviction", "Evicted", "NodeNotReady")
"""Reasons of events of a pod that somebody ended: the pod, which has a condition for it, may be gone."""
ENDINGS = ("Complete", "Failed", FAILING)
CANCEL_S = 150.0
KINDS = "job,service,configmap"
RIGHTS = "serviceaccount,role,rolebinding"
"""Kinds that only a job has which starts pods of its own; who has none may not be allowed to ask for them."""
INSTANCE = "app.kubernetes.io/instance"
GONE = "its objects are gone: they were deleted, or their time to be kept is over"

_BY_HAND = re.compile(r"^# By hand: kubectl (.*) apply --server-side -f job\.yaml$", re.MULTILINE)
_JOB_NAME = re.compile(r"^kind: Job\nmetadata:\n  name: ([a-z0-9-]+)$", re.MULTILINE)
_HAS_RIGHTS = re.compile(r"^kind: Role$", re.MULTILINE)
_OF_A_BLOCK = re.compile(r"^ +subdomain: ", re.MULTILINE)
"""Its pods look for rank 0 by its name; those of a standing cluster don't."""
_NO_SUCH, _MAY_NOT = "(NotFound)", "(Forbidden)"


class NotAppliedError(SchedulerError):
    """The cluster has refused the objects, and none of them is left."""


def current_allocation(environ: Mapping[str, str]) -> Allocation | None:  # noqa: ARG001 - whatever they are
    """None can be: nodes aren't lent to a shell."""
    raise UsageError("Kubernetes gives no nodes to a shell", then="leave --here out")


def submit(job_dir: Path, environ: Mapping[str, str], after: Sequence[str] = ()) -> str:  # noqa: ARG001
    """``kubectl apply``, or only a note while jobs before it live; see ``QueuedScheduler.submit``."""
    name = _name(job_dir)
    before = submitted.read(job_dir)
    cluster = _cluster(job_dir)
    # What somebody has declared ended may lie on a cluster that is gone.
    if before is not None and not (before.declared_ended and before.cluster != cluster):
        _require_cluster(before, cluster)
        _require_no_loss(job_dir)
        _delete(job_dir)
    pod_log_collector.begin(job_dir)
    (job_dir / SEEN_FILE).unlink(missing_ok=True)
    waits_for = after or _names_and_places(_others(job_dir))
    entry = submitted.write(job_dir, NAME, name, cluster=cluster, after=waits_for)
    try:
        if not entry.after:
            _apply(job_dir, entry)
    except (MissingToolError, NotAppliedError):  # after any other error the Job may be there: `state` finds out
        submitted.restore(job_dir, before)
        raise
    return name


def _require_no_loss(job_dir: Path) -> None:
    """Raise SchedulerError where rank 0's pod of an earlier start holds a log that nobody could read."""
    pods = [pod for pod in _pods(_objects(job_dir)) if not pod.rank]
    if unread := pod_log_collector.unread(job_dir, {pod.uid for pod in pods}):
        deletion = ["kubectl", *_client(job_dir), "delete", "pod", *(pod.name for pod in pods), "--force"]
        raise SchedulerError(
            f"{unread[0]}; the results in it would be lost", then=f"if they may be: {shlex.join(deletion)}"
        )


def _apply(job_dir: Path, entry: Submitted) -> None:
    """Hand the job over, unless that of another campaign is older: then it waits for that one."""
    name = _name(job_dir)
    done = _kubectl(job_dir, "apply", "--server-side", "-f", JOB_FILE)
    if done.returncode:
        _delete(job_dir)  # a Service without its Job is of no use
        raise NotAppliedError(f"kubectl refuses {job_dir / JOB_FILE}: {output_line(done)}")
    warning = "; ".join(dict.fromkeys(line for line in done.stderr.splitlines() if line.startswith("Warning: ")))
    entry = dataclasses.replace(entry, job_id=name, warning=warning)
    submitted.keep(job_dir, entry)
    # Two front ends may have looked at once. The one that applied last sees both Jobs, and gives way.
    jobs = _jobs_of_blocks(job_dir)
    created = next((job["metadata"]["creationTimestamp"] for job in jobs if job["metadata"]["name"] == name), "")
    if older := [other for other in _others(job_dir, jobs) if other["metadata"]["creationTimestamp"] <= created]:
        _delete(job_dir)
        submitted.keep(job_dir, dataclasses.replace(entry, job_id="", after=[*entry.after, *_names_and_places(older)]))


def _others(job_dir: Path, jobs: Sequence[Mapping[str, Any]] | None = None) -> list[Mapping[str, Any]]:
    """Jobs of other campaigns that hold nodes, or will: beside one of them, each could hold half of what both need."""
    listed = _jobs_of_blocks(job_dir) if jobs is None else jobs
    return [job for job in listed if job["metadata"]["name"] != _name(job_dir) and _holds_nodes(job)]


def _jobs_of_blocks(job_dir: Path) -> list[Mapping[str, Any]]:
    """In all namespaces, or in ours where this user may not look further; none for a standing cluster's job."""
    if not _OF_A_BLOCK.search(_text(job_dir)):
        return []
    query = ("get", "jobs", "-l", OURS, "-o", "json")
    done = _kubectl(job_dir, *query, "--all-namespaces")
    if _MAY_NOT in done.stderr:
        done = _kubectl(job_dir, *query)
    return [job for job in _items(done) if "subdomain" in job["spec"]["template"]["spec"]]


def _holds_nodes(job: Mapping[str, Any]) -> bool:
    """Whether it has neither ended, nor fails, nor waits in a queue of the cluster's (Kueue)."""
    ended = not _conditions(job).keys().isdisjoint(ENDINGS)
    return not (ended or "deletionTimestamp" in job["metadata"] or job["spec"].get("suspend"))


def _conditions(job: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Those that hold, by type."""
    conditions = job.get("status", {}).get("conditions", ())
    return {condition["type"]: condition for condition in conditions if condition["status"] == "True"}


def _names_and_places(jobs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"{job['metadata']['name']} (namespace {job['metadata']['namespace']})" for job in jobs]


declare_ended = submitted.declare_ended


def state(job_dir: Path) -> JobState:
    entry = submitted.read(job_dir)
    if entry is None:
        return JobState("unsubmitted")
    now = _state(job_dir, entry)
    reasons = filter(None, (now.reason, *pod_log_collector.torn(job_dir)))
    return declared(entry.declared_ended, dataclasses.replace(now, reason="; ".join(reasons)))


def _state(job_dir: Path, entry: Submitted) -> JobState:
    seen = _seen(job_dir)
    if seen is not None and seen.phase == "ended":
        return seen
    try:
        _require_cluster(entry, _cluster(job_dir))
        objects = _objects(job_dir)
    except (MissingToolError, SchedulerError) as error:
        missing = isinstance(error, MissingToolError)
        if not missing and entry.declared_ended is None:
            raise
        why = "there is no kubectl here to ask" if missing else error.what
        return JobState("unknown", reason=why, job_id=entry.job_id)
    job = next((item for item in objects if item["kind"] == "Job"), None)
    pods = _pods(objects)
    if job is not None:
        now = _judge(job, pods, seen)
        all_began = len(pods) == job["spec"]["completions"] and all(pod.began() for pod in pods)
        if not now.reason and now.word != "COMPLETED" and not (now.word == "Running" and all_began):
            now = dataclasses.replace(now, reason=_unsaid(job_dir, entry, job, pods))
        return _remember(job_dir, now)
    if living := ", ".join(pod.name for pod in pods if pod.lives()):
        return JobState("running", "Deleted", f"its Job was deleted, and pods live on: {living}", None, entry.job_id)
    if entry.job_id:
        reason = f"{GONE}; when last seen: {seen.reason}" if seen and seen.reason else GONE
        return _remember(job_dir, JobState("ended", "GONE", reason, None, entry.job_id, seen.hosts if seen else ""))
    waits = JobState("pending", reason=f"waits for {', '.join(entry.after)}")
    return waits if entry.after else state_of_unclear_submit(entry, f"the cluster has no Job {_name(job_dir)}")


def poll(job_dirs: Sequence[Path], *, submit_next: bool) -> None:
    """See ``Polled.poll``; the next job is due when all before it have ended.

    Nothing where there is no kubectl: a copy of a campaign can be looked at anywhere.
    """
    if shutil.which(SUBMIT) is None:
        return
    entries = {job_dir: entry for job_dir in job_dirs if (entry := submitted.read(job_dir)) is not None}
    open_jobs = {entry.name for entry in entries.values()}
    for job_dir, entry in entries.items():
        if _fetch(job_dir) or state(job_dir).phase == "ended":
            open_jobs.discard(entry.name)
        elif submit_next and not entry.job_id and entry.after and not open_jobs.intersection(entry.after):
            _require_cluster(entry, _cluster(job_dir))
            if others := _names_and_places(_others(job_dir)):
                submitted.keep(job_dir, dataclasses.replace(entry, after=others))
            else:
                _apply(job_dir, entry)


def cancel(job_dir: Path) -> None:
    """Fetch what is there, ``kubectl delete``, and wait until no pod is left."""
    now = state(job_dir)
    if now.over:
        return
    if now.doubt:
        raise SchedulerError(f"job {job_dir.name}: {now.doubt}")
    _remember(job_dir, JobState("ended", "CANCELLED", "deleted by gpubench cancel", None, now.job_id, now.hosts))
    try:
        _take_away(job_dir)
    except BaseException:
        (job_dir / SEEN_FILE).unlink(missing_ok=True)
        raise


def remove(job_dir: Path) -> None:
    entry = submitted.read(job_dir)
    if entry is not None and entry.job_id:
        _require_cluster(entry, _cluster(job_dir))
        _take_away(job_dir)


def _take_away(job_dir: Path) -> None:
    """Fetch the logs, delete every object, come back when no pod is left."""
    _fetch(job_dir, again=True)
    _delete(job_dir)


def _fetch(job_dir: Path, *, again: bool = False) -> bool:
    """Bring the logs of the pods and the results in them; whether the job had ended before, with all of them here."""
    seen = _seen(job_dir)
    if pod_log_collector.complete(job_dir) and not again:
        return seen is not None and seen.phase == "ended"
    objects = _objects(job_dir)
    job = next((item for item in objects if item["kind"] == "Job"), None)
    if job is None:
        return False
    pods = _pods(objects)
    now = _judge(job, pods, seen)
    whole = all(pod.began() == list(pod.exit_codes()) for pod in pods)
    for pod in pods:
        if pod.stuck():
            whole = False  # nobody can read its log
            continue
        if pod.rank and not now.end:
            continue  # the results are in rank 0's; what the others said matters when something went wrong
        for container in pod.began():
            if pod_log_collector.whole(job_dir, pod.uid, pod.rank, container):
                continue
            done = _kubectl(job_dir, "logs", pod.name, "-c", container)
            if done.returncode == 0:
                code = pod.exit_codes().get(container)
                run = "" if pod.rank else _run_directory(job_dir, container)
                pod_log_collector.keep(job_dir, pod.uid, pod.rank, container, done.stdout, code=code, run=run)
            elif _NO_SUCH not in done.stderr:
                whole = False
                pod_log_collector.refused(job_dir, pod.uid, pod.rank, container, output_line(done))
    if whole and now.phase == "ended" and not pod_log_collector.torn(job_dir):
        pod_log_collector.finish(job_dir)
    return False


def _run_directory(job_dir: Path, container: str) -> str:
    """What rank 0's container of a run prints, by the name that it has in the pod; empty for any other container."""
    specs = [path.stem for path in job_dir.glob(f"specs/*-{container.removeprefix('run-')}-*.json")]
    if not container.startswith("run-") or not specs:
        return ""
    return f"{specs[0].rpartition('-')[2]}-1"


def _judge(job: Mapping[str, Any], pods: Sequence[Pod], seen: JobState | None) -> JobState:
    """The Job's own conditions; while it has none, what its pods are doing."""
    name = str(job["metadata"]["name"])
    hosts = _hosts(pods, seen)
    waiting = _waiting(pods)
    if not waiting and len(pods) < job["spec"]["completions"] and seen and seen.phase != "ended":
        waiting = seen.reason  # of a failing job the pods go first: what they said would be lost
    conditions = _conditions(job)
    if "Complete" in conditions:
        return JobState("ended", "COMPLETED", "", 0, name, hosts)
    deleted = {"reason": "DELETED"} if "deletionTimestamp" in job["metadata"] else None
    ending = conditions.get("Failed") or conditions.get(FAILING) or deleted
    if ending is None:
        if any(pod.began() for pod in pods):
            return JobState("running", "Running", waiting, None, name, hosts)
        return JobState("pending", "Pending", waiting, None, name, hosts)
    failed = next((failure for pod in pods if (failure := pod.failure())), None)
    stuck = [pod for pod in pods if pod.stuck()]
    before = seen.reason if seen and seen.phase != "ended" else ""
    parts = [waiting, *([ending["reason"], failed[1]] if failed else [])]
    parts += [f"{pod.place()} was deleted and is still there: does the node answer?" for pod in stuck]
    reason = "; ".join(filter(None, (before, *(part for part in parts if part not in before))))
    if "Failed" not in conditions and (not stuck or any(pod.lives() and not pod.stuck() for pod in pods)):
        return JobState("running", "Failing" if FAILING in conditions else "Deleting", reason, None, name, hosts)
    word, code = ("FAILED", failed[0]) if failed else (ending["reason"], None)
    return JobState("ended", word, reason, code, name, hosts)


def _waiting(pods: Sequence[Pod]) -> str:
    """Why pods don't go on: each reason once, with the pods that have it."""
    places: dict[str, list[str]] = {}
    for pod in pods:
        place, reason = pod.waits()
        if reason:
            places.setdefault(reason, []).append(place)
    return "; ".join(f"{', '.join(of)}: {reason}" for reason, of in places.items())


def _unsaid(job_dir: Path, entry: Submitted, job: Mapping[str, Any], pods: Sequence[Pod]) -> str:
    """Why a Job has no pods that run, where those that are there don't say it."""
    conditions = _conditions(job)
    ending = conditions.get("Failed") or conditions.get(FAILING)
    if "Suspended" in conditions:
        return f"{conditions['Suspended']['reason']}: {conditions['Suspended'].get('message', '')}"
    if ending is None:
        names = {job["metadata"]["name"], *(pod.name for pod in pods if not pod.began())}
        warned = entry.warning if len(pods) < job["spec"]["completions"] else ""
        return (
            _event(job_dir, lambda event: event.get("type") == "Warning" and event["involvedObject"]["name"] in names)
            or warned
        )
    message = str(ending.get("message", ""))
    if ending["reason"] == "BackoffLimitExceeded":  # the limit is 0, and a pod that failed is kept
        of_pods = f"{job['metadata']['name']}-"
        disruption = _event(
            job_dir,
            lambda event: (
                event.get("reason") in DISRUPTIONS and str(event["involvedObject"]["name"]).startswith(of_pods)
            ),
        )
        return disruption or "no pod of it has failed, so one was deleted: by hand, by a drain, or with its node"
    if ending["reason"] == "DeadlineExceeded":
        allowed = format_seconds(job["spec"]["activeDeadlineSeconds"])
        return f"{message} ({allowed}: the job's time limit and kubernetes.start)"
    return message


def _event(job_dir: Path, about: Callable[[Mapping[str, Any]], bool]) -> str:
    """The words of the last such event of our namespace; empty where there is none, or where we may not look."""
    done = _kubectl(job_dir, "get", "events", "-o", "json")
    events = [event for event in _items(done) if about(event)] if not done.returncode else []
    if not events:
        return ""
    last = max(events, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    place = last["involvedObject"]
    return f"{place['kind'].lower()} {place['name']}: {last.get('reason')}: {' '.join(last.get('message', '').split())}"


def _hosts(pods: Sequence[Pod], seen: JobState | None) -> str:
    """Nodes of the pods that are there, and of those that have been."""
    before = seen.hosts.split(",") if seen else []
    return ",".join(sorted({*(pod.node for pod in pods), *before} - {""}))


def _pods(objects: Sequence[Mapping[str, Any]]) -> list[Pod]:
    pods = [Pod(item) for item in objects if item["kind"] == "Pod" and INDEX in item["metadata"].get("annotations", {})]
    return sorted(pods, key=lambda pod: pod.rank)


def _objects(job_dir: Path) -> list[Mapping[str, Any]]:
    """The Job and its pods; none where they are gone."""
    return _items(_kubectl(job_dir, "get", "job,pods", "-l", f"{INSTANCE}={_name(job_dir)}", "-o", "json"))


def _items(done: subprocess.CompletedProcess[str]) -> list[Mapping[str, Any]]:
    items: list[Mapping[str, Any]] = json.loads(_answer("get", done))["items"]
    return items


def _answer(verb: str, done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode:
        raise SchedulerError(
            f"kubectl {verb} failed: {output_line(done)}", then="does the cluster answer? kubectl get nodes"
        )
    return done.stdout


def _delete(job_dir: Path) -> None:
    selector = f"{INSTANCE}={_name(job_dir)}"
    kinds = f"{KINDS},{RIGHTS}" if _HAS_RIGHTS.search(_text(job_dir)) else KINDS
    _answer("delete", _kubectl(job_dir, "delete", kinds, "-l", selector, "--cascade=foreground", "--wait=false"))
    left = poll_until(
        lambda: _objects(job_dir),
        lambda left: not left or _all_stuck(left),
        interval_s=0.5,
        timeout_s=CANCEL_S,
        growth=1.5,
        longest_s=3.0,
    )
    if not left:
        return
    client = f"kubectl {shlex.join(_client(job_dir))}"
    pods = _pods(left)
    raise SchedulerError(
        f"{', '.join(pod.place() for pod in pods) or f'Job {_name(job_dir)}'} is still there, though it was deleted",
        then=f"if its node doesn't come back: {client} delete pod {' '.join(pod.name for pod in pods)} --force"
        if pods
        else f"inspect it: {client} describe job {_name(job_dir)}",
    )


def _all_stuck(objects: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there are pods, all of them on nodes that don't answer: nothing more comes from waiting."""
    living = [pod for pod in _pods(objects) if pod.lives()]
    return bool(living) and all(pod.stuck() for pod in living)


def _cluster(job_dir: Path) -> str:
    """The address of the API server to which kubectl talks; empty where its configuration names none, as in a pod."""
    done = _kubectl(job_dir, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
    return done.stdout.strip() if done.returncode == 0 else ""


def _require_cluster(entry: Submitted, now: str) -> None:
    """Raise SchedulerError where kubectl talks to another cluster than that of the submit: there the job isn't."""
    if entry.cluster != now:
        raise SchedulerError(
            f"kubectl talks to {now or 'no cluster'}, and job {entry.name} is on {entry.cluster or 'another'}",
            then="choose that cluster by KUBECONFIG, or by kubectl config use-context",
        )


def _kubectl(job_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call(["kubectl", *_client(job_dir), *arguments], cwd=job_dir)


def _client(job_dir: Path) -> list[str]:
    """Words for kubectl that say where the objects are."""
    match = _BY_HAND.search(_text(job_dir))
    assert match is not None
    return shlex.split(match[1])


def _name(job_dir: Path) -> str:
    """What the Job is called, as its file says."""
    match = _JOB_NAME.search(_text(job_dir))
    if match is None or not _BY_HAND.search(_text(job_dir)):
        raise SchedulerError(
            f"{job_dir / JOB_FILE} isn't as gpubench wrote it", then=f"gpubench plan --out {job_dir.parents[1]}"
        )
    return match[1]


def _text(job_dir: Path) -> str:
    try:
        return (job_dir / JOB_FILE).read_text(encoding="utf-8")
    except OSError as error:
        raise SchedulerError(
            f"can't read {job_dir / JOB_FILE}: {error.strerror}", then=f"gpubench plan --out {job_dir.parents[1]}"
        ) from None


def _seen(job_dir: Path) -> JobState | None:
    try:
        return JobState(**json.loads((job_dir / SEEN_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _remember(job_dir: Path, now: JobState) -> JobState:
    if now != _seen(job_dir):
        plain = {name: getattr(now, name) for name in ("phase", "word", "reason", "exit_code", "job_id", "hosts")}
        write_atomically(job_dir / SEEN_FILE, json.dumps(plain, indent=1) + "\n")
    return now
