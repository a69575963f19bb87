"""Our objects at a real API server, an old one: taken, known by our labels, and gone after ``cancel``."""

from __future__ import annotations

import concurrent.futures
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpubench import resources
from gpubench.errors import SchedulerError
from gpubench.render.cluster import render_cluster_job
from gpubench.schedulers import kubernetes
from tests.kubernetes.real import ApiServer
from tests.render.test_cluster_jobs import FURTHER, on_kubernetes
from tests.render.test_object_files import EVERYTHING, planned
from tests.rendering import render_jobs
from tests.slurm.hosts import until

pytestmark = [pytest.mark.system, pytest.mark.long]

UNKNOWN = ("completionMode", "namespaceSelector")
"""What 1.20 doesn't know: Indexed Jobs came with 1.21, namespaces of an affinity with 1.22. No more is left out."""
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "results", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}


def job_dir(directory: Path, *settings: str, without: tuple[str, ...] = UNKNOWN, **changes: Any) -> Path:
    """A job's directory with what we render, less these fields of the Job."""
    made = planned(*settings, "kubernetes.context=old", **changes)
    name, data = next(
        (name, data)
        for name, data in render_jobs(made, made.jobs, resources.job_templates(), b"node half").items()
        if name.endswith("job.yaml")
    )
    path = directory / made.campaign / name
    path.parent.mkdir(parents=True)
    path.write_text(less(data.decode(), without))
    return path.parent


def less(text: str, without: tuple[str, ...] = UNKNOWN) -> str:
    """An object file less these fields of the Job, each on a line."""
    for field in without:
        lines = text.splitlines(keepends=True)
        text = "".join(line for line in lines if not line.lstrip().startswith(f"{field}:"))
        assert len(text.splitlines()) == len(lines) - 1
    return text


def ours(server: ApiServer) -> list[tuple[str, str]]:
    """Kind and name of everything that bears our label."""
    found = server.items("job,service,configmap,pod", "-l", "app.kubernetes.io/name=gpubench")
    return [(one["kind"], one["metadata"]["name"]) for one in found]


@pytest.mark.parametrize("settings", [(), EVERYTHING], ids=["as-shipped", "everything"])
def test_every_field_of_our_objects_is_taken_but_those_that_are_newer(
    here: ApiServer, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    path = job_dir(tmp_path, *settings) / "job.yaml"
    said = here.kubectl("apply", "--server-side", "--dry-run=server", "-f", path)
    assert said.count("serverside-applied (server dry run)") == len(list(yaml.safe_load_all(path.read_text())))
    whole = job_dir(tmp_path / "whole", *settings, without=()) / "job.yaml"
    said = here.kubectl("apply", "--server-side", "--dry-run=server", "-f", whole, code=1)
    assert 'unknown field "completionMode" in io.k8s.api.batch.v1.JobSpec' in said
    assert 'unknown field "namespaceSelector" in io.k8s.api.core.v1.PodAffinityTerm' in said
    assert ours(here) == []


@pytest.mark.parametrize("settings", [("kubernetes.claim=results",), EVERYTHING], ids=["a-claim", "everything"])
def test_the_object_of_a_standing_cluster_is_taken_too(
    here: ApiServer, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    files = render_cluster_job(on_kubernetes(*settings), FURTHER, resources.job_templates(), "hash")
    (tmp_path / "job.yaml").write_text(less(files["jobs/j002-n2/job.yaml"].decode()))
    said = here.kubectl("apply", "--server-side", "--dry-run=server", "-f", tmp_path / "job.yaml")
    assert said.count("serverside-applied (server dry run)") == 1


def test_a_job_is_handed_over_found_by_its_labels_and_deleted_with_all_that_it_brought(
    here: ApiServer, tmp_path: Path
) -> None:
    here.kubectl("apply", "-f", written(tmp_path / "claim.json", CLAIM))
    directory = job_dir(tmp_path)
    name = kubernetes.submit(directory, {})
    assert set(ours(here)) == {("Job", name), ("Service", name), ("ConfigMap", name)}
    (service,) = here.items("service", "-l", f"app.kubernetes.io/instance={name}")
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
    pod = here.items("job")[0]["spec"]["template"]["spec"]
    assert [one["name"] for one in pod["initContainers"]][:3] == ["unpack", "image-1", "arrive"]
    assert kubernetes.state(directory).phase == "pending"
    gone: set[str] = set()

    def collected() -> bool:
        gone.update(here.collect())
        return "Job" in gone

    with concurrent.futures.ThreadPoolExecutor() as beside:
        cancelling = beside.submit(kubernetes.cancel, directory)
        until(collected, "the Job's deletion")
        cancelling.result(60)
    assert gone | here.collect() == {"Job", "Service", "ConfigMap"}
    assert ours(here) == []
    assert kubernetes.state(directory).word == "CANCELLED"
    assert [one["metadata"]["name"] for one in here.items("persistentvolumeclaim")] == ["results"]  # none of ours


def test_what_the_server_refuses_is_said_and_leaves_nothing(here: ApiServer, tmp_path: Path) -> None:
    directory = job_dir(tmp_path, without=())
    with pytest.raises(SchedulerError, match=r"kubectl refuses .*completionMode"):
        kubernetes.submit(directory, {})
    assert here.collect() == {"Service"}  # what stood before the refused Job
    assert ours(here) == []


def written(path: Path, one: dict[str, Any]) -> Path:
    path.write_text(json.dumps(one))
    return path
