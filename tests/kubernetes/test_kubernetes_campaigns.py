"""Whole campaigns through the public commands, on a stand-in cluster whose pods are real processes on real networks."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.campaigns import nothing_left, records, until
from tests.kubernetes.cluster import VERSIONS, Cluster

pytestmark = pytest.mark.system
ONE_VERSION = ("--variants", "a=1.22.0 b=1.22.0", "--protocol", "tcp")


def statuses(campaign: Path) -> list[tuple[str, str]]:
    """Status and reason of every record, in the order in which the runs began."""
    found = sorted(records(campaign).values(), key=lambda record: str(record["started_at"]))
    return [(str(record["status"]), str(record["reason"])) for record in found]


def running(cluster: Cluster, container: str) -> bool:
    """Whether rank 0's container of that name runs and has started its processes."""
    pods = [
        pod
        for pod in cluster.pods()
        if pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "0"
    ]
    states = {one["name"]: one["state"] for pod in pods for one in pod["status"].get("initContainerStatuses", ())}
    return "running" in states.get(container, {}) and any("--role client" in line for line in cluster.processes())


def test_two_blocks_of_two_versions_on_two_nodes_come_home_over_the_log_one_job_after_the_other(
    cluster: Cluster,
) -> None:
    campaign = cluster.plan("--blocks", "2")
    assert [path.name for path in sorted(campaign.glob("jobs/*/job.yaml"))] == ["job.yaml"] * 2
    cluster.run("submit", campaign)
    assert len(cluster.store.all("Job")) == 1
    assert "waits for g-planned" in cluster.run("status", campaign, code=4)
    said = cluster.run("status", "--watch", campaign)
    assert "[4/4] block 2" in said
    found = sorted(records(campaign).values(), key=lambda record: str(record["started_at"]))
    assert [(run["status"], run["nodes"], run["transport"]) for run in found] == [("ok", 2, ["tcp"])] * 4
    assert [run["block"] for run in found] == [1, 1, 2, 2]
    assert sorted(run["ucx_version"] for run in found) == sorted(VERSIONS * 2)
    assert all(before["ended_at"] <= after["started_at"] for before, after in itertools.pairwise(found))
    assert all(sorted(run["hosts"]) == ["k1", "k2"] for run in found)  # the machines, not the pods
    provenance = [json.loads(path.read_text()) for path in campaign.glob("runs/*/provenance.json")]
    assert {one["host"] for run in provenance for key in ("nodes", "processes") for one in run[key]} == {"k1", "k2"}
    before = {path: path.stat().st_mtime_ns for path in campaign.glob("runs/*/*")}
    asked = (cluster.root / "commands").read_text()
    assert cluster.run("status", campaign).endswith("4 ok of 4 runs\n")
    assert {path: path.stat().st_mtime_ns for path in campaign.glob("runs/*/*")} == before
    assert (cluster.root / "commands").read_text() == asked  # what is all here needs no cluster any more
    assert "tasks | 1.22.0 vs 1.19.0" in cluster.run("compare", campaign, code=21)
    assert "arrive-rank0.log" in cluster.run("logs", campaign)


def test_cancel_ends_every_process_and_resume_runs_the_block_again(cluster: Cluster) -> None:
    campaign = cluster.plan(*ONE_VERSION, reps=1500)
    cluster.run("submit", campaign)
    until(lambda: running(cluster, "run-0"), "the first run")
    assert "Running on k1,k2" in cluster.run("status", campaign, code=4)
    assert "job j001-n2: cancelled" in cluster.run("cancel", campaign)
    assert (list(cluster.pods()), cluster.store.all("Job")) == ([], [])
    nothing_left(cluster.processes)
    said = cluster.run("status", campaign, code=4)
    assert "CANCELLED: deleted by gpubench cancel" in said
    assert "2 lost of 2 runs" in said
    assert "lost: started, but left no record: job j001-n2 ended (CANCELLED" in said
    assert "before this run started" in said
    cluster.run("submit", "--campaign", campaign)
    assert len(cluster.store.all("Job")) == 1
    cluster.run("cancel", campaign)


def test_a_pod_that_is_never_scheduled_skips_the_block_and_its_reason_is_told(cluster: Cluster) -> None:
    campaign = cluster.plan(*ONE_VERSION, "--nodes", "3", "--set", "kubernetes.start=15s")
    cluster.have_images({})  # nobody starts before it has been seen whom no node takes
    cluster.run("submit", campaign)
    until(lambda: "Unschedulable" in cluster.run("status", campaign, code=4), "the pod without a node")
    cluster.have_nodes(2, full=True)  # else it might get that of rank 1, when that one has ended
    cluster.have_all_images()
    cluster.run("status", "--watch", campaign, code=4)
    assert [status for status, _ in statuses(campaign)] == ["skipped"] * 2
    assert all("the pod of node rank 2 did not start within 15 s" in reason for _, reason in statuses(campaign))
    said = cluster.run("status", campaign, code=4)
    assert "FAILED, exit code 40" in said
    assert "Unschedulable: 0/2 nodes are available" in said


def test_a_node_has_one_pod_of_gpubench_whatever_its_namespace(cluster: Cluster) -> None:
    """Seen on Kubernetes 1.36.2: a term without a namespaceSelector is about its own namespace."""
    cluster.have_nodes(1)
    cluster.have_images({})
    for namespace in ("default", "bench"):
        campaign = cluster.plan(*ONE_VERSION, "--nodes", "1", more=f'namespace = "{namespace}"')
        (job_file,) = campaign.glob("jobs/*/job.yaml")
        words = ["kubectl", "--namespace", namespace, "apply", "--server-side", "-f", str(job_file)]
        subprocess.run(words, env={**os.environ, **cluster.env()}, check=True, capture_output=True)
    until(lambda: len(list(cluster.pods())) == 2, "both pods")
    until(lambda: all("conditions" in pod["status"] for pod in cluster.pods()), "the scheduler's word on both")
    assert sum("nodeName" in pod["spec"] for pod in cluster.pods()) == 1


@pytest.mark.long
def test_a_pod_that_is_deleted_fails_its_job_and_the_runs_before_are_kept(cluster: Cluster) -> None:
    campaign = cluster.plan(*ONE_VERSION, reps=20)
    cluster.run("submit", campaign)
    until(lambda: running(cluster, "run-1"), "the second run")
    client = next(pid for pid, line in cluster.process_ids().items() if "--role client" in line)
    os.kill(client, signal.SIGSTOP)  # it shall not be over when we have looked
    cluster.run("status", campaign, code=4)
    cluster.store.delete(next(one for one in cluster.pods() if one["spec"]["hostname"].endswith("-1")))
    os.kill(client, signal.SIGCONT)
    said = cluster.run("status", "--watch", campaign, code=4)
    assert "BackoffLimitExceeded" in said
    assert statuses(campaign)[0] == ("ok", "")
    assert "1 ok, 1 lost of 2 runs" in said or "1 ok, 1 skipped of 2 runs" in said


def test_results_are_complete_though_nobody_looked_and_their_logs_were_turned_over(cluster: Cluster) -> None:
    turned_over = [cluster.root / "turn-over" / name for name in ("run-0", "run-1")]
    turned_over[0].parent.mkdir()
    for path in turned_over:
        path.touch()
    try:
        campaign = cluster.plan(*ONE_VERSION)
        cluster.run("submit", campaign)
        until(lambda: cluster.store.all("Job")[0]["status"].get("conditions"), "the end of the job")
    finally:
        shutil.rmtree(turned_over[0].parent)
    assert list(campaign.glob("runs/*")) == []
    assert cluster.run("status", campaign).endswith("2 ok of 2 runs\n")
    assert statuses(campaign) == [("ok", ""), ("ok", "")]


def test_a_node_that_is_drained_before_anybody_looked_loses_its_runs(cluster: Cluster) -> None:
    campaign = cluster.plan(*ONE_VERSION, "--nodes", "1", reps=20)
    cluster.run("submit", campaign)
    until(lambda: running(cluster, "run-1"), "the second run")
    (pod,) = cluster.pods()
    cluster.store.delete(pod)
    until(lambda: not list(cluster.pods()), "the end of the pod, and of its logs")
    said = cluster.run("status", "--watch", campaign, code=4)
    assert "2 lost of 2 runs" in said
    assert "BackoffLimitExceeded: no pod of it has failed, so one was deleted: by hand, by a drain" in said
