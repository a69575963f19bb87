"""The stand-in for kubelets, where a campaign's tests don't reach."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpubench.schedulers import kubernetes
from tests.cli.campaigns import nothing_left, until
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.object_files import object_file

pytestmark = pytest.mark.testbed


def test_a_pod_whose_config_map_is_gone_waits_for_it_and_ends_when_its_job_is_deleted(
    kubernetes_here: Cluster, tmp_path: Path
) -> None:
    text = object_file("g-1", "claim", "true").replace(
        "persistentVolumeClaim: {claimName: claim}", "configMap: {name: gone}"
    )
    (tmp_path / "job.yaml").write_text(text)
    kubernetes.submit(tmp_path, os.environ)
    until(lambda: [pod for pod in kubernetes_here.pods() if "nodeName" in pod["spec"]], "a pod on its node")
    assert [pod["status"]["phase"] for pod in kubernetes_here.pods()] == ["Pending"]
    kubernetes.cancel(tmp_path)
    nothing_left(lambda: [*kubernetes_here.pods(), *kubernetes_here.store.all("Job")])
