"""What the adapter makes of what a cluster says, over the stand-in kubectl. Nothing runs; a test says what became."""

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpubench.errors import MissingToolError, SchedulerError, UsageError
from gpubench.node.spec.log_transport import encode
from gpubench.schedulers import batch, kubernetes, submitted
from tests.conftest import ROOT
from tests.kubernetes.object_files import object_file
from tests.kubernetes.store import Store
from tests.schedulers.conftest import remembered

INDEX = "batch.kubernetes.io/job-completion-index"


class Api:
    """The objects of a cluster in which nobody acts."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root / "cluster")
        self.campaign = root / "campaign"

    def job(self, number: int = 1, namespace: str = "default", campaign: str = "campaign") -> Path:
        directory = self.campaign.with_name(campaign) / "jobs" / f"j{number:03d}-n2"
        directory.mkdir(parents=True)
        (directory / "job.yaml").write_text(object_file(f"g-{number}", "claim", "true", namespace=namespace))
        return directory

    def status(self, number: int = 1, **conditions: str) -> None:
        """The Job's conditions: their types with reasons, in the order in which they came."""
        job = self.store.read("Job", f"g-{number}")
        assert job is not None
        rows = [
            {"type": kind, "status": "True", "reason": why, "message": "so it is"} for kind, why in conditions.items()
        ]
        self.store.write({**job, "status": {"conditions": rows}})

    def pod(self, index: int, number: int = 1, *, deleted: str = "", uid: str = "", **status: Any) -> None:
        """``deleted``: when its grace period is over, if somebody has deleted it."""
        labels = {"app.kubernetes.io/instance": f"g-{number}"}
        name = f"g-{number}-{index}-abcde"
        metadata = {"name": name, "namespace": "default", "labels": labels, "annotations": {INDEX: str(index)}}
        metadata |= {"deletionTimestamp": deleted} if deleted else {}
        metadata |= {"uid": uid} if uid else {}
        self.store.write({"kind": "Pod", "metadata": metadata, "spec": {"nodeName": f"k{index}"}, "status": status})

    def event(self, number: int, about: str, reason: str, message: str, kind: str = "Warning") -> None:
        """Of the Job, or of a pod; a higher number is a later one."""
        involved = {"kind": "Job" if about == "g-1" else "Pod", "name": about}
        metadata = {"name": f"event-{number}", "namespace": "default"}
        event = {"kind": "Event", "metadata": metadata, "involvedObject": involved, "type": kind, "reason": reason}
        self.store.write({**event, "message": message, "lastTimestamp": f"2026-11-26T21:08:{number:02d}Z"})

    def commands(self) -> list[str]:
        path = self.store.root / "commands"
        return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    folder = tmp_path / "bin"
    folder.mkdir()
    stand_in = ROOT / "tests" / "stand_ins" / "kubectl"
    (folder / "kubectl").write_text(f'#!/bin/bash\nexec {sys.executable} {stand_in} "$@"\n')
    (folder / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN_KUBERNETES", str(tmp_path / "cluster"))
    return Api(tmp_path)


@pytest.fixture
def job(api: Api) -> Path:
    """The directory of a job that has been handed over."""
    made = api.job()
    kubernetes.submit(made, os.environ)
    return made


def state(name: str, **terminated: Any) -> dict[str, Any]:
    return {"name": name, "state": {"terminated": terminated}}


def test_a_waiting_pod_says_why_and_the_words_outlive_it(api: Api) -> None:
    job = api.job()
    assert kubernetes.submit(job, os.environ) == "g-1"
    assert (kubernetes.state(job).phase, kubernetes.state(job).reason) == ("pending", "")
    api.pod(0, phase="Pending", initContainerStatuses=[{"name": "run-0", "state": {"running": {}}}])
    unfit = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    api.pod(1, phase="Pending", conditions=[unfit])
    now = kubernetes.state(job)
    assert (now.phase, now.alive, now.exit_code, now.hosts) == ("running", True, None, "k0,k1")
    assert now.reason == "pod g-1-1-abcde: Unschedulable: 0/1 nodes"
    for index in (0, 1):
        api.store.remove("Pod", f"g-1-{index}-abcde")
    assert kubernetes.state(job).reason == "pod g-1-1-abcde: Unschedulable: 0/1 nodes"  # the Job itself fails later
    api.status(Failed="DeadlineExceeded")
    ended = kubernetes.state(job)
    assert (ended.phase, ended.hosts) == ("ended", "k0,k1")
    assert ended.end == "DeadlineExceeded: pod g-1-1-abcde: Unschedulable: 0/1 nodes"


def test_a_container_that_waits_its_turn_is_no_reason_and_one_whose_image_is_missing_is(api: Api, job: Path) -> None:
    rows = [{"name": "run-1", "state": {"waiting": {"reason": "PodInitializing"}}}]
    api.pod(0, phase="Pending", initContainerStatuses=rows)
    assert (kubernetes.state(job).phase, kubernetes.state(job).reason) == ("pending", "")
    rows = [{"name": "image-1", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]
    api.pod(0, phase="Pending", initContainerStatuses=rows)
    assert kubernetes.state(job).reason == "pod g-1-0-abcde, container image-1: ImagePullBackOff: no such image"


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (
            {"initContainerStatuses": [state("run-0", exitCode=0), state("run-1", exitCode=137, reason="OOMKilled")]},
            137,
            "FAILED, exit code 137: BackoffLimitExceeded; container run-1 of pod g-1-1-abcde (OOMKilled)",
        ),
        (
            {"containerStatuses": [state("end", exitCode=40, reason="Error")]},
            40,
            "FAILED, exit code 40: BackoffLimitExceeded; container end of pod g-1-1-abcde",
        ),
        (
            {"reason": "Evicted", "message": "the node was low on memory"},
            None,
            "FAILED: BackoffLimitExceeded; pod g-1-1-abcde: Evicted: the node was low on memory",
        ),
    ],
)
def test_a_pod_that_failed_says_which_container_and_how(
    api: Api, job: Path, status: dict[str, Any], code: int | None, words: str
) -> None:
    api.pod(1, phase="Failed", **status)
    api.status(Failed="BackoffLimitExceeded")
    assert (kubernetes.state(job).exit_code, kubernetes.state(job).end) == (code, words)


QUOTA = 'Error creating: pods "g-1-0-7jfr2" is forbidden: exceeded quota: q, requested: pods=1, limited: pods=0'
VIOLATES = 'would violate PodSecurity "restricted:latest": host namespaces (hostNetwork=true)'


def test_a_job_whose_pods_are_refused_says_why_and_the_warning_of_its_apply_is_kept(api: Api) -> None:
    """Seen on Kubernetes 1.36.2 (quota; PodSecurity): no pods, and the Job's event has the reason."""
    job = api.job()
    (api.store.root / "warning").write_text(f"{VIOLATES}\n")
    kubernetes.submit(job, os.environ)
    entry = remembered(job)
    assert entry.warning == f"Warning: {VIOLATES}"
    assert kubernetes.state(job).standing == f"Pending: Warning: {VIOLATES}"
    (job / "kubernetes.json").unlink()
    api.event(1, "g-2", "FailedCreate", "of another")
    api.event(2, "g-1", "FailedCreate", "an older one")
    api.event(3, "g-1", "FailedCreate", QUOTA)
    api.event(4, "g-1", "SuccessfulCreate", "no fault", kind="Normal")
    assert kubernetes.state(job).standing == f"Pending: job g-1: FailedCreate: {QUOTA}"
    api.status(Failed="DeadlineExceeded")
    assert kubernetes.state(job).end == f"DeadlineExceeded: job g-1: FailedCreate: {QUOTA}"


def test_pods_that_cannot_begin_say_why_and_who_may_not_read_events_is_told_the_rest(api: Api, job: Path) -> None:
    """FailedMount is an event only; Kueue's jobs are suspended."""
    rows = [{"name": "run-0", "state": {"waiting": {"reason": "PodInitializing"}}}]
    api.pod(0, phase="Pending", initContainerStatuses=rows)
    api.event(1, "g-1-0-abcde", "FailedMount", 'MountVolume.SetUp failed for volume "outputs"')
    assert kubernetes.state(job).standing == (
        'Pending k0: pod g-1-0-abcde: FailedMount: MountVolume.SetUp failed for volume "outputs"'
    )
    api.pod(1, phase="Pending", initContainerStatuses=[{"name": "unpack", "state": {"running": {}}}])
    api.event(2, "g-1-1-abcde", "FailedScheduling", "before it had a node")
    assert kubernetes.state(job).standing == (  # of a job whose other pods wait for this one
        'Running k0,k1: pod g-1-0-abcde: FailedMount: MountVolume.SetUp failed for volume "outputs"'
    )
    api.store.remove("Pod", "g-1-1-abcde")
    (job / "kubernetes.json").unlink()
    (api.store.root / "no-events").touch()
    assert kubernetes.state(job).standing == "Pending k0"
    api.store.remove("Pod", "g-1-0-abcde")
    (job / "kubernetes.json").unlink()
    api.status(Suspended="JobSuspended")
    assert kubernetes.state(job).standing == "Pending: JobSuspended: so it is"


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"),
        ("EvictionByEvictionAPI", "Eviction API: evicting"),
        ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"),
        ("TerminationByKubelet", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi."),
    ],
)
def test_who_ended_a_pod_wins_over_its_exit_code(api: Api, job: Path, reason: str, message: str) -> None:
    """Reasons and messages as Kubernetes' own sources write them (condition DisruptionTarget)."""
    disrupted = [{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}]
    ended = [state("run-0", exitCode=143, reason="Error")]
    api.pod(0, phase="Failed", conditions=disrupted, initContainerStatuses=ended)
    api.status(Failed="BackoffLimitExceeded")
    assert kubernetes.state(job).end == (
        f"FAILED, exit code 143: pod g-1-0-abcde on node k0: {reason}: {message}; "
        "BackoffLimitExceeded; container run-0 of pod g-1-0-abcde"
    )


def test_the_events_of_pods_that_are_gone_say_who_ended_them(api: Api, job: Path) -> None:
    api.event(1, "g-1-1-abcde", "Preempted", "Preempted by pod 1f on node k1", kind="Normal")
    api.event(2, "g-1-0-abcde", "Killing", "Stopping container run-0", kind="Normal")
    api.status(Failed="BackoffLimitExceeded")
    assert kubernetes.state(job).end == (
        "BackoffLimitExceeded: pod g-1-1-abcde: Preempted: Preempted by pod 1f on node k1"
    )


def test_pods_that_wait_for_the_same_reason_are_told_together(api: Api, job: Path) -> None:
    unfit = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    for index in (0, 1):
        api.pod(index, phase="Pending", conditions=[unfit])
    assert kubernetes.state(job).reason == "pod g-1-0-abcde, pod g-1-1-abcde: Unschedulable: 0/1 nodes"


RUNNING = [{"name": "run-0", "state": {"running": {}}}]
TAINTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


def test_a_job_whose_last_pod_is_on_a_dead_node_ends_without_it_and_says_where_it_is(api: Api, job: Path) -> None:
    """Seen on Kubernetes 1.36.2, kubelet of rank 1 stopped in run-0.

    FailureTarget 62 s after the node was NotReady, then never Failed: 1 pod was terminating, rank 0's was gone.
    """
    for index in (0, 1):
        api.pod(index, phase="Pending", initContainerStatuses=RUNNING)
    assert kubernetes.state(job).text == "Running k0,k1"
    api.store.remove("Pod", "g-1-0-abcde")
    soon = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=20)).isoformat()
    api.pod(1, phase="Pending", deleted=soon, initContainerStatuses=RUNNING, conditions=[TAINTED])
    api.status(FailureTarget="BackoffLimitExceeded")
    tainted = "pod g-1-1-abcde on node k1: DeletionByTaintManager: Taint manager: deleting due to NoExecute taint"
    for _ in range(2):
        now = kubernetes.state(job)
        assert (now.phase, now.text, now.reason) == ("running", "Failing k0,k1", tainted)
    api.pod(1, phase="Pending", deleted="2026-11-26T21:09:20Z", initContainerStatuses=RUNNING, conditions=[TAINTED])
    second = api.job(2)
    kubernetes.submit(second, os.environ, ["g-1"])
    kubernetes.poll([job, second], submit_next=True)
    assert kubernetes.state(job).end == (
        f"BackoffLimitExceeded: {tainted}; "
        "pod g-1-1-abcde on node k1 was deleted and is still there: does the node answer?"
    )
    assert api.store.read("Job", "g-2") is not None
    assert "logs g-1-1-abcde -c run-0" not in (api.store.root / "commands").read_text()


def test_a_pod_that_cannot_be_deleted_is_named_with_its_node_and_what_to_do(api: Api, job: Path) -> None:
    """Seen on Kubernetes 1.36.2: a cancel waited for 156 s, and then named the Job only."""
    api.pod(1, phase="Pending", deleted="2026-11-26T21:09:20Z", initContainerStatuses=RUNNING)
    with pytest.raises(SchedulerError) as raised:
        kubernetes.cancel(job)
    assert str(raised.value) == (
        "pod g-1-1-abcde on node k1 is still there, though it was deleted; "
        "if its node doesn't come back: kubectl --namespace default delete pod g-1-1-abcde --force"
    )
    ended = kubernetes.state(job)
    assert ended.end == "DELETED: pod g-1-1-abcde on node k1 was deleted and is still there: does the node answer?"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("BackoffLimitExceeded", "no pod of it has failed, so one was deleted: by hand, by a drain, or with its node"),
        ("DeadlineExceeded", "so it is (10m00s: the job's time limit and kubernetes.start)"),
    ],
)
def test_a_job_whose_pods_are_gone_says_what_its_reason_means(api: Api, job: Path, reason: str, words: str) -> None:
    """Seen on Kubernetes 1.36.2: "Job has reached the specified backoff limit", "was active longer than specified"."""
    for index in (0, 1):
        api.pod(index, phase="Pending", initContainerStatuses=RUNNING)
    kubernetes.state(job)
    api.store.remove("Pod", "g-1-0-abcde")
    api.pod(1, phase="Pending", initContainerStatuses=RUNNING, deleted="2036-11-26T21:09:20Z")
    api.status(FailureTarget=reason)
    assert (kubernetes.state(job).text, kubernetes.state(job).reason) == ("Failing k0,k1", words)
    api.store.remove("Pod", "g-1-1-abcde")
    api.status(FailureTarget=reason, Failed=reason)
    ended = kubernetes.state(job)
    assert (ended.end, ended.hosts) == (f"{reason}: {words}", "k0,k1")


def test_a_job_that_is_complete_ended_well_and_is_not_asked_for_again(api: Api, job: Path) -> None:
    api.status(Complete="CompletionsReached")
    kubernetes.poll([job], submit_next=True)
    asked = len(api.commands())
    assert (kubernetes.state(job).word, kubernetes.state(job).exit_code, kubernetes.state(job).end) == (
        "COMPLETED",
        0,
        "",
    )
    kubernetes.poll([job], submit_next=True)
    assert len(api.commands()) == asked


def test_a_job_whose_objects_are_gone_has_ended_with_what_was_last_seen(api: Api, job: Path) -> None:
    api.pod(0, phase="Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "x", "message": "y"}])
    kubernetes.state(job)
    api.store.remove("Job", "g-1")
    living = kubernetes.state(job)
    assert (living.phase, living.reason) == ("running", "its Job was deleted, and pods live on: g-1-0-abcde")
    api.store.remove("Pod", "g-1-0-abcde")
    assert kubernetes.state(job).phase == "ended"
    assert kubernetes.state(job).end.startswith("GONE: its objects are gone: they were deleted")
    assert kubernetes.state(job).end.endswith("when last seen: pod g-1-0-abcde: x: y")


def test_a_job_behind_another_is_handed_over_when_that_one_has_ended_by_who_may(api: Api) -> None:
    first, second = api.job(1), api.job(2)
    name = kubernetes.submit(first, os.environ)
    kubernetes.submit(second, os.environ, [name])
    assert (kubernetes.state(second).phase, kubernetes.state(second).reason) == ("pending", "waits for g-1")
    kubernetes.poll([first, second], submit_next=True)
    assert api.store.read("Job", "g-2") is None
    api.status(1, Failed="BackoffLimitExceeded")
    kubernetes.poll([first, second], submit_next=False)
    assert api.store.read("Job", "g-2") is None
    kubernetes.poll([first, second], submit_next=True)
    assert api.store.read("Job", "g-2") is not None
    assert (kubernetes.state(second).phase, kubernetes.state(second).job_id) == ("pending", "g-2")


def test_campaigns_take_turns_also_across_namespaces(api: Api) -> None:
    """Seen on Kubernetes 1.36.2: two Jobs of two nodes held one each, until kubernetes.start was over for both."""
    first, second, other = api.job(1), api.job(2), api.job(3, "bench", "other")
    kubernetes.submit(first, os.environ)
    kubernetes.submit(second, os.environ, ["g-1"])
    kubernetes.submit(other, os.environ)
    assert api.store.read("Job", "g-3") is None
    assert (kubernetes.state(other).phase, kubernetes.state(other).reason) == (
        "pending",
        "waits for g-1 (namespace default)",
    )
    api.status(1, Complete="CompletionsReached")
    kubernetes.poll([other], submit_next=True)
    kubernetes.poll([first, second], submit_next=True)
    assert (api.store.read("Job", "g-2"), kubernetes.state(second).reason) == (None, "waits for g-3 (namespace bench)")
    api.status(3, FailureTarget="BackoffLimitExceeded")
    kubernetes.poll([first, second], submit_next=True)
    assert api.store.read("Job", "g-2") is not None


def test_of_two_jobs_that_are_applied_at_once_the_later_gives_way(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    job, other = api.job(1), api.job(2, campaign="other")
    looked: list[Path] = []

    def look(job_dir: Path, *words: str) -> subprocess.CompletedProcess[str]:
        done = kubectl(job_dir, *words)
        if words[:2] == ("get", "jobs") and not looked:
            looked.append(job_dir)
            kubernetes.submit(other, os.environ)
        if words[0] == "delete":
            api.store.remove("Job", "g-1")  # as the agent does when there is no pod
        return done

    kubectl = kubernetes._kubectl
    monkeypatch.setattr(kubernetes, "_kubectl", look)
    kubernetes.submit(job, os.environ)
    assert [one["metadata"]["name"] for one in api.store.all("Job")] == ["g-2"]
    assert kubernetes.state(job).reason == "waits for g-2 (namespace default)"


def test_jobs_that_hold_no_nodes_and_standing_clusters_are_not_waited_for(api: Api) -> None:
    waits_in_kueue = ("parallelism: 1", "parallelism: 1\n  suspend: true")
    stands = ("      subdomain: g-2\n", "")
    jobs = [api.job(number, campaign=f"c{number}") for number in (1, 2, 3)]
    for job, change in zip(jobs, (waits_in_kueue, stands, ("", "")), strict=True):
        text = (job / "job.yaml").read_text()
        (job / "job.yaml").write_text(text.replace(*change, 1))
        kubernetes.submit(job, os.environ)
    assert len(api.store.all("Job")) == 3


def test_who_may_list_one_namespace_only_looks_there(api: Api) -> None:
    (api.store.root / "own-namespace-only").touch()
    kubernetes.submit(api.job(1, campaign="mine"), os.environ)
    kubernetes.submit(api.job(2, "bench", "hidden"), os.environ)
    kubernetes.submit(api.job(3, campaign="seen"), os.environ)
    assert [one["metadata"]["name"] for one in api.store.all("Job")] == ["g-1", "g-2"]


def test_a_job_that_was_cancelled_while_it_waited_is_never_handed_over(api: Api) -> None:
    first, second = api.job(1), api.job(2)
    kubernetes.submit(second, os.environ, [kubernetes.submit(first, os.environ)])
    kubernetes.cancel(second)
    api.status(1, Complete="CompletionsReached")
    kubernetes.poll([first, second], submit_next=True)
    assert api.store.read("Job", "g-2") is None
    assert kubernetes.state(second).end == "CANCELLED: deleted by gpubench cancel"


def test_a_refusal_has_the_clusters_words_and_leaves_nothing(api: Api) -> None:
    job = api.job()
    text = (job / "job.yaml").read_text()
    (job / "job.yaml").write_text(text.replace("backoffLimit: 0", "backofLimit: 0"))
    with pytest.raises(SchedulerError, match=r"kubectl refuses .*job\.yaml: .*backofLimit"):
        kubernetes.submit(job, os.environ)
    assert (submitted.read(job), api.store.all("Job")) == (None, [])
    (job / "job.yaml").write_text(text.replace("default", "nowhere"))
    with pytest.raises(SchedulerError, match='namespaces "nowhere" not found'):
        kubernetes.submit(job, os.environ)
    (job / "job.yaml").write_text(text.replace("# By hand", "# by hand"))
    with pytest.raises(SchedulerError, match=r"job\.yaml isn't as gpubench wrote it; gpubench plan --out "):
        kubernetes.submit(job, os.environ)


def test_without_kubectl_a_submit_says_so_and_a_copy_tells_what_was_last_seen(
    api: Api, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(api.campaign))
    assert kubernetes.state(job).phase == "unknown"
    with pytest.raises(MissingToolError, match="there is no kubectl on this machine"):
        kubernetes.submit(job, os.environ)
    monkeypatch.undo()
    assert submitted.read(job) is not None


def test_the_end_of_a_job_is_told_on_a_copy_without_a_cluster(
    api: Api, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.status(Failed="DeadlineExceeded")
    kubernetes.state(job)
    shutil.copytree(api.campaign, api.campaign.with_name("copy"))
    monkeypatch.setenv("PATH", str(api.campaign))
    copy = api.campaign.with_name("copy") / "jobs" / "j001-n2"
    kubernetes.poll([copy], submit_next=True)
    assert kubernetes.state(copy).end.startswith("DeadlineExceeded: so it is")


def test_nodes_are_not_lent_to_a_shell() -> None:
    with pytest.raises(UsageError, match="leave --here out"):
        kubernetes.current_allocation(os.environ)


@pytest.mark.parametrize(("condition", "ranks"), [("Complete", [0]), ("Failed", [0, 1])])
def test_a_log_is_fetched_once_and_of_other_ranks_only_when_something_went_wrong(
    api: Api, job: Path, condition: str, ranks: list[int]
) -> None:
    for index in (0, 1):
        api.pod(index, phase="Running", initContainerStatuses=[state("run-0", exitCode=0)])
        log = api.store.log(f"g-1-{index}-abcde", "run-0")
        log.parent.mkdir(parents=True)
        log.write_text(f"words of rank {index}\n")
    for _ in range(2):
        kubernetes.poll([job], submit_next=True)
    assert api.commands().count("logs") == 1
    api.status(**{condition: "why"})
    for _ in range(2):
        kubernetes.poll([job], submit_next=True)
    assert api.commands().count("logs") == len(ranks)
    found = {path.name: path.read_text() for path in job.glob("*.log")}
    assert found == {f"run-0-rank{rank}.log": f"words of rank {rank}\n" for rank in ranks}


def test_a_job_that_was_suspended_and_resumed_has_begun_its_block_again(api: Api, job: Path) -> None:
    """A block is never of two allocations: what its first pods measured is an earlier attempt."""
    (job / "specs").mkdir()
    (job / "specs" / "001-0-ab12.json").touch()
    log = api.store.log("g-1-0-abcde", "run-0")
    log.parent.mkdir(parents=True)
    for pod in ("of the first start", "of the second"):
        api.pod(0, uid=pod, phase="Running", initContainerStatuses=[state("run-0", exitCode=0)])
        record = json.dumps({"attempt": 1, "run": "ab12", "reason": pod}, indent=1).encode()
        log.write_text("\n".join(encode("ab12-1", {"run.json": record})) + "\n")
        kubernetes.poll([job], submit_next=True)
    records = sorted((api.campaign / "runs").glob("*/run.json"))
    plain = [json.loads(path.read_text()) for path in records]
    assert [(run["attempt"], run["reason"]) for run in plain] == [(1, "of the first start"), (2, "of the second")]


def test_logs_that_cannot_be_read_are_told_until_they_can_be(api: Api, job: Path, tmp_path: Path) -> None:
    api.pod(0, uid="7f3a", phase="Running", initContainerStatuses=[state("run-0", exitCode=0)])
    log = api.store.log("g-1-0-abcde", "run-0")
    log.parent.mkdir(parents=True)
    log.write_text("words of rank 0\n")
    (tmp_path / "cluster" / "no-logs").touch()
    for conditions in ({}, {"Complete": "why"}):
        api.status(**conditions)
        for _ in range(2):
            kubernetes.poll([job], submit_next=True)
            assert kubernetes.state(job).reason == (
                "log of container run-0, rank 0: kubectl can't read it: Error from server (Forbidden): "
                'pods "g-1-0-abcde" is forbidden: User "me" cannot get resource "pods/log"'
            )
    with pytest.raises(SchedulerError, match=r"the results in it would be lost; if they may be: kubectl .* --force"):
        kubernetes.submit(job, os.environ)
    (tmp_path / "cluster" / "no-logs").unlink()
    kubernetes.poll([job], submit_next=True)
    assert kubernetes.state(job).reason == ""
    assert (job / "run-0-rank0.log").read_text() == "words of rank 0\n"


def test_a_job_of_kubernetes_is_not_looked_for_in_another_cluster(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = api.job()
    kubernetes.submit(directory, os.environ)
    (tmp_path / "second").mkdir()
    with monkeypatch.context() as patched:
        patched.setenv("STAND_IN_KUBERNETES", str(tmp_path / "second"))
        for ask in (kubernetes.state, kubernetes.cancel, kubernetes.remove):
            with pytest.raises(
                SchedulerError, match=r"kubectl talks to https://second:6443, and job g-1 is on https://cl"
            ):
                ask(directory)
        with pytest.raises(SchedulerError, match="kubectl talks to https://second"):
            kubernetes.submit(directory, os.environ)
        kubernetes.declare_ended(directory)  # the first cluster is gone
        assert kubernetes.state(directory).word == "DECLARED ENDED"
        assert kubernetes.submit(directory, os.environ) == "g-1"
        assert kubernetes.state(directory).alive


def test_a_job_whose_apply_was_not_heard_is_there(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = api.job()
    deaf = tmp_path / "deaf"
    deaf.mkdir()
    then = "code=$?\n[[ $* = *apply* ]] && exec sleep 600\nexit $code"
    (deaf / "kubectl").write_text(f'#!/bin/bash\n{shutil.which("kubectl")} "$@"\n{then}\n')
    (deaf / "kubectl").chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{deaf}:{os.environ['PATH']}")
        patched.setattr(batch, "DEADLINE_S", 5.0)
        with pytest.raises(SchedulerError, match="kubectl didn't answer"):
            kubernetes.submit(directory, os.environ)
    assert kubernetes.state(directory).phase == "pending"
