"""The site kubernetes through the public commands, where there is no cluster."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from gpubench.errors import UsageError
from gpubench.resources.profiles import load_site
from tests.conftest import Run

SHAPE = ("--site", "kubernetes", "--nodes", "2", "--blocks", "3", "--suite", "weak-arrays")


def without_kubectl(directory: Path) -> dict[str, str]:
    folder = directory / "bin"
    folder.mkdir()
    return {"PATH": str(folder), "HOME": os.environ.get("HOME", "/")}


def test_render_names_an_object_file_per_block_and_says_what_stands_in_it_by_hand(
    gpubench: Run, tmp_path: Path
) -> None:
    done = gpubench("plan", *SHAPE, "--out", "a", "--set", "kubernetes.namespace=team")
    assert done.returncode == 0, done.stderr
    scripts = [line for line in done.stdout.splitlines() if line.startswith("script ")]
    assert scripts == [f"script a/jobs/j00{number}-n2/job.yaml" for number in (1, 2, 3)]
    text = (tmp_path / "a/jobs/j001-n2/job.yaml").read_text()
    assert "# By hand: kubectl --namespace team apply --server-side -f job.yaml\n" in text


def test_submit_without_kubectl_writes_the_object_files_and_says_where_to_go_on(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench("submit", *SHAPE, env=without_kubectl(tmp_path))
    assert done.returncode == 5, done.stderr
    assert "there is no kubectl on this machine; the scripts are in" in done.stderr
    assert len(list(tmp_path.glob("outputs/*/jobs/*/job.yaml"))) == 3


def test_a_profile_without_a_shared_file_system_is_no_fault_where_jobs_bring_their_files(gpubench: Run) -> None:
    done = gpubench("sites", "check", "kubernetes")
    assert done.returncode == 0, done.stderr
    assert "not checked" not in done.stdout
    assert "ok: no shared file system is needed: jobs bring their files along, and pods print" in done.stdout


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ('kubernetes.tolerations=[{operator="Sometimes"}]', "kubernetes.tolerations.0.operator"),
        ("kubernetes.port=80", "kubernetes.port"),
        ("kubernetes.claims=x", "claims"),
        ("kubernetes.runtime_class=Not One", "kubernetes.runtime_class"),
        ('kubernetes.labels={"app.kubernetes.io/name"="mine"}', "kubernetes.labels"),
        ('kubernetes.labels={team="{x: y}"}', "kubernetes.labels"),
        ('kubernetes.annotations={"two words"="x"}', "kubernetes.annotations"),
        ('kubernetes.resources={"rdma/hca"=0}', "kubernetes.resources"),
        ('kubernetes.resources={"memory"=1}', "kubernetes.resources"),
        ('kubernetes.resources={"nvidia.com/gpu"=1}', "how many is node.gpus"),
        ("kubernetes.namespace=Not One", "kubernetes.namespace"),
        ('kubernetes.context="two\\nlines"', "kubernetes.context"),
    ],
)
def test_a_profile_with_a_value_that_kubernetes_would_not_take_is_refused_by_name(setting: str, key: str) -> None:
    with pytest.raises(UsageError, match=re.escape(key)):
        load_site("kubernetes", [setting])
