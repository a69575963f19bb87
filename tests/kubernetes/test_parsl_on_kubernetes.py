"""Workload `tasks` with parsl's workers in pods of their own, on a stand-in cluster: they are there, and then gone."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.cli.campaigns import nothing_left, records, until
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.store import Object

pytestmark = [pytest.mark.system, pytest.mark.long]
SUITE = """
name = "tasks-in-pods"
[[workload]]
name = "tasks"
backend = "parsl"
reps = 1
warmup = 0
params = {{ mode = "estimate", target = "{target}", parsl_provider = "kubernetes" }}
"""
KINDS = ("Job", "Pod", "Service", "ConfigMap", "ServiceAccount", "Role", "RoleBinding")


def planned(cluster: Cluster, target: str, *words: str, more: str = "") -> Path:
    """A campaign of one block of A against A on one node."""
    suite = cluster.directory / "pods.toml"
    suite.write_text(SUITE.format(target=target))
    same = ("--variants", "a=1.22.0 b=1.22.0", "--protocol", "tcp", "--nodes", "1")
    return cluster.plan(*same, *words, suite=suite, more=more)


def blocks(cluster: Cluster, phase: str = "") -> list[Object]:
    """Pods that parsl has asked for."""
    found = [one for one in cluster.pods() if "gpubench/blocks-of" in one["metadata"]["labels"]]
    return [one for one in found if not phase or one["status"]["phase"] == phase]


def left(cluster: Cluster, campaign: Path) -> list[object]:
    """Objects of a campaign, and processes of any."""
    names = [(kind, one["metadata"]["name"]) for kind in KINDS for one in cluster.store.all(kind)]
    return [*(one for one in names if campaign.name in one[1]), *blocks(cluster), *cluster.processes()]


def test_blocks_are_pods_on_other_nodes_than_the_run_s_and_gone_after_it(cluster: Cluster) -> None:
    campaign = planned(cluster, "1s")
    cluster.run("submit", campaign)
    seen: list[Object] = []
    until(lambda: seen.extend(blocks(cluster, "Running")) or seen, "a block", 90)
    (own,) = [one for one in cluster.pods() if "gpubench/blocks-of" not in one["metadata"]["labels"]]
    assert seen[0]["spec"]["nodeName"] != own["spec"]["nodeName"]
    assert seen[0]["metadata"]["ownerReferences"][0]["uid"] == own["metadata"]["uid"]
    cluster.run("status", "--watch", campaign)
    assert [(record["status"], record["reason"]) for record in records(campaign).values()] == [("ok", "")] * 2
    for name in records(campaign):
        (workload,) = json.loads((campaign / "runs" / name / "run.json").read_text())["workloads"]
        assert workload["details"]["providers"] == ["KubernetesProvider"]
    assert blocks(cluster) == []


def test_blocks_are_gone_when_their_client_is_killed_and_when_the_campaign_is_cancelled(cluster: Cluster) -> None:
    campaign = planned(cluster, "100s")
    cluster.run("submit", campaign)
    until(lambda: blocks(cluster, "Running"), "a block")
    (first,) = blocks(cluster)
    clients = [pid for pid, line in cluster.process_ids().items() if "tasks_parsl:ParslSubmitter" in line]
    for client in clients:
        os.kill(client, signal.SIGKILL)
    names = {first["metadata"]["name"]}
    until(
        lambda: not names & {one["metadata"]["name"] for one in blocks(cluster)}, "the end of the killed client's block"
    )
    until(lambda: blocks(cluster, "Running"), "the block of the second run")
    cluster.run("cancel", campaign)
    nothing_left(lambda: left(cluster, campaign))


def test_a_block_that_finds_no_node_and_rights_that_are_missing_are_the_reason_of_a_skipped_workload(
    cluster: Cluster,
) -> None:
    cluster.have_nodes(1)
    campaign = planned(cluster, "1s", "--set", "kubernetes.start=15s")
    cluster.run("submit", campaign)
    cluster.run("status", "--watch", campaign, code=4)
    (reason, other) = [workload_of(campaign, name)["reason"] for name in records(campaign)]
    assert reason.startswith("pod parsl.tasks-")
    assert "didn't run after 15 s: Unschedulable: 0/1 nodes are available" in reason
    assert other[-60:] == reason[-60:]
    campaign = planned(cluster, "1s", more='service_account = "poor"')
    cluster.run("submit", campaign)
    cluster.run("status", "--watch", campaign, code=4)
    lacks = "may not create, get, list, delete pods in namespace default, which a block of parsl needs"
    assert {workload_of(campaign, name)["reason"] for name in records(campaign)} == {
        f"the service account of the run's pods {lacks}"
    }


def workload_of(campaign: Path, name: str) -> Object:
    found: Object
    (found,) = json.loads((campaign / "runs" / name / "run.json").read_text())["workloads"]
    assert found["status"] == "skipped"
    return found
