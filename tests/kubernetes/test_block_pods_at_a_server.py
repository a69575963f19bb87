"""Blocks of parsl as pods at a real API server: by parsl's own provider and the real client, with the rendered rights.

Nothing runs there: pods are made, changed by nobody, and deleted.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpubench import resources
from gpubench.node.spec import RunSpec
from gpubench.node.workloads import tasks_parsl
from gpubench.node.workloads.base import UnavailableError
from gpubench.node.workloads.parsl_pods import BlockPods
from gpubench.schedulers import kubernetes
from tests.kubernetes.real import ApiServer
from tests.kubernetes.test_real_api_server import job_dir, less
from tests.plan.test_block_pods import parsl
from tests.render.test_object_files import EVERYTHING
from tests.render.test_rights_for_block_pods import RIGHTS, with_pods
from tests.rendering import render_jobs
from tests.slurm.hosts import until

pytestmark = [pytest.mark.system, pytest.mark.long, pytest.mark.filterwarnings("ignore:Unverified HTTPS request")]
KUBECONFIG = "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION"
"""Read from the environment when the client is imported."""
FACTS = {"provider": "kubernetes", "address": "10.0.0.1", "nodes": 2, "workers_per_node": 3}
OWNER = """
import sys
from gpubench.node.workloads.parsl_pods import BlockPods
from gpubench.node.workloads.tasks_parsl import own_config
pods = BlockPods("killed", [])
(executor,) = own_config({facts}, pods).executors
for number in range(2):
    print(executor.provider.submit("true", 1, f"parsl.tasks-killed.block-{{number}}"), flush=True)
sys.stdin.read()
"""


class Job:
    """The objects of a job that bring rights, and the pod of its first run, which nobody starts."""

    def __init__(self, server: ApiServer, directory: Path, *settings: str) -> None:
        made = with_pods(*settings)
        files = render_jobs(made, made.jobs[:1], resources.job_templates(), b"node half")
        text = less(files[f"jobs/{made.jobs[0].job}/job.yaml"].decode())
        found = {one["kind"]: one for one in yaml.safe_load_all(text)}
        self.server = server
        self.rights = [found[kind] for kind in RIGHTS if kind in found]
        self.account = found["Job"]["metadata"]["name"]
        template = found["Job"]["spec"]["template"]
        uid = {
            "controller-uid": "1",
            "batch.kubernetes.io/controller-uid": "1",
            "batch.kubernetes.io/job-name": self.account,
        }
        about = {**template["metadata"], "name": f"{self.account}-0-abcde", "namespace": "default"}
        about["labels"] = {**about["labels"], **uid}
        self.pod = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": template["spec"]}
        (spec,) = [data for name, data in files.items() if "/specs/001-1-" in name]
        self.env = {
            "KUBECONFIG": str(server.root / self.account),
            "GPUBENCH_POD_NAME": about["name"],
            "GPUBENCH_BLOCK_PODS": RunSpec.parse(spec.decode(), "run-1").env["GPUBENCH_BLOCK_PODS"],
        }
        self._file = directory / "objects.json"

    def apply(self) -> None:
        """All of it."""
        items = [*self.rights, self.pod]
        self._file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        self.server.kubectl("apply", "-f", self._file)

    def blocks(self) -> list[dict[str, Any]]:
        """Pods of the job that aren't the run's own."""
        found = self.server.items("pod", "-l", f"app.kubernetes.io/instance={self.account}")
        return [one for one in found if one["metadata"]["name"] != self.pod["metadata"]["name"]]

    def delete(self) -> None:
        """Every object."""
        self.server.kubectl("delete", "-f", self._file, "--ignore-not-found")


@pytest.fixture
def job(here: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    made = Job(here, tmp_path)
    made.apply()
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(KUBECONFIG, made.env["KUBECONFIG"])
    monkeypatch.chdir(tmp_path)
    yield made
    monkeypatch.undo()
    made.delete()


def provider(pods: BlockPods) -> Any:
    (executor,) = tasks_parsl.own_config(FACTS, pods).executors
    return executor.provider


def test_a_block_is_a_pod_like_the_run_s_with_its_labels_and_owned_by_it(job: Job) -> None:
    pods = BlockPods("mark", [])
    try:
        made = provider(pods)
        assert (type(made).__name__, made.init_blocks, made.max_blocks) == ("KubernetesProvider", 2, 2)
        number = made.submit("python -c pass", 1, "parsl.tasks-mark.block-0")
        assert made.status([number])[0].state.name == "PENDING"
        (block,) = job.blocks()
        (own,) = job.server.items("pod", "--field-selector", f"metadata.name={job.pod['metadata']['name']}")
        (owner,) = block["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner.get("controller")) == ("Pod", own["metadata"]["uid"], None)
        labels = {**job.rights[0]["metadata"]["labels"], "gpubench/blocks-of": "mark", "parsl-job-id": number}
        assert block["metadata"]["labels"] == labels
        (container,) = block["spec"]["containers"]
        (run,) = [one for one in own["spec"]["initContainers"] if one["name"] == "run-1"]
        assert [container[key] for key in ("image", "securityContext")] == [run["image"], run["securityContext"]]
        assert container["command"] == ["/bin/bash"]
        assert "python -c pass" in container["args"][1]
        for key in ("affinity", "securityContext", "enableServiceLinks"):
            assert block["spec"][key] == own["spec"][key]
        assert (block["spec"]["restartPolicy"], block["spec"]["automountServiceAccountToken"]) == ("Never", False)
        assert "volumes" not in block["spec"]
        pods.check()
        made.cancel([number])
        assert job.blocks() == []
        made.cancel([number])  # whoever deletes it first
    finally:
        pods.over()


def test_the_pods_of_a_client_that_is_killed_are_deleted_and_no_others(job: Job) -> None:
    other = BlockPods("other", [])
    try:
        provider(other).submit("true", 1, "parsl.tasks-other.block-0")
        (left,) = job.blocks()
        words = [sys.executable, "-c", OWNER.format(facts=FACTS)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as owner:
            assert owner.stdout is not None
            assert all(owner.stdout.readline() for _ in range(2))
            assert len(job.blocks()) == 3
            os.kill(owner.pid, signal.SIGKILL)
        until(lambda: len(job.blocks()) == 1, "the end of the killed client's pods")
        assert job.blocks()[0]["metadata"]["uid"] == left["metadata"]["uid"]
    finally:
        other.over()


def test_a_pod_that_the_cluster_refuses_ends_the_wait_with_its_words(job: Job) -> None:
    asked = json.loads(os.environ["GPUBENCH_BLOCK_PODS"])
    os.environ["GPUBENCH_BLOCK_PODS"] = json.dumps({**asked, "labels": {"team": "no label!"}})
    pods = BlockPods("refused", [])
    try:
        with pytest.raises(UnavailableError, match=r"refuses a pod for a block of parsl: .*no label!"):
            provider(pods).submit("true", 1, "parsl.tasks-refused.block-0")
        with pytest.raises(UnavailableError, match="no label!"):
            pods.check()
    finally:
        pods.over()


def test_outside_of_a_run_s_pod_and_without_a_cluster_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GPUBENCH_POD_NAME", "GPUBENCH_BLOCK_PODS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UnavailableError, match=r"scheduler kubernetes: GPUBENCH_BLOCK_PODS isn't set here"):
        BlockPods("x", [])
    monkeypatch.setenv("GPUBENCH_BLOCK_PODS", '{"namespace": "default"}')
    with pytest.raises(UnavailableError, match=r"scheduler kubernetes: GPUBENCH_POD_NAME isn't set here"):
        BlockPods("x", [])
    monkeypatch.setenv("GPUBENCH_POD_NAME", "p")
    monkeypatch.setattr(KUBECONFIG, str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(UnavailableError, match="no cluster to start parsl's blocks in"):
        BlockPods("x", [])


@pytest.mark.parametrize("settings", [(), EVERYTHING], ids=["as-shipped", "everything"])
def test_a_job_with_rights_is_taken_and_cancel_leaves_none_of_its_objects(
    here: ApiServer, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    directory = job_dir(tmp_path, *settings, workloads=[parsl("kubernetes")])
    name = kubernetes.submit(directory, {})
    kinds = "job,service,serviceaccount,role,rolebinding"
    of_it = ("-l", f"app.kubernetes.io/instance={name}")
    wanted = {"Job", "Service"} | (set() if settings else set(RIGHTS))
    assert {one["kind"] for one in here.items(kinds, *of_it)} == wanted
    with concurrent.futures.ThreadPoolExecutor() as beside:
        cancelling = beside.submit(kubernetes.cancel, directory)
        until(lambda: here.collect() or cancelling.done(), "the deletion")
        until(lambda: here.collect() or not here.items(kinds, *of_it), "the end of all objects")
        cancelling.result(60)
    assert here.items(kinds, *of_it) == []
