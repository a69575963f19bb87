"""The script and the specs of a standing cluster's job: a golden file, and who can't have one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gpubench import resources
from gpubench.errors import PlanRefusedError
from gpubench.model.cluster import ClusterJob, ClusterRecord
from gpubench.model.variant import Variant
from gpubench.node.spec import RunSpec
from gpubench.render.cluster import client_lines, client_script, render_cluster_job
from gpubench.resources.profiles import load_site
from tests.plan.requests_by_hand import image, site
from tests.render.test_object_files import EVERYTHING, RELEASES
from tests.rendering import check_golden, check_shell

TEMPLATES = resources.job_templates()
GOLDEN = Path(__file__).parents[1] / "golden" / "clusters"
FURTHER = ClusterJob(job="j002-n2", nodes=2, first_rank=4, limit_s=7200)


def record(**changes: Any) -> ClusterRecord:
    return ClusterRecord(
        **{
            "name": "mine",
            "identity": "0123456789ab",
            "directory": "/shared/it's mine/clusters/mine",
            "created_at": "2026-11-21T12:00:00+00:00",
            "gpubench": "0.1",
            "site": site(scheduler="slurm", launcher="srun"),
            "variant": Variant(label="new", ucx="1.19.0", env={"UCX_PROTO_ENABLE": "n"}),
            "image": image("1.19.0"),
            "protocol": "ucx",
            "memory_limit": 2**30,
            "limit_s": 7200.0,
            "workarounds": {"UCX_OF_AN_ISSUE": "y"},
            **changes,
        }
    )


def test_a_further_job_is_the_golden_script_and_knows_its_place() -> None:
    files = render_cluster_job(record(), FURTHER, TEMPLATES, "hash")
    check_golden(GOLDEN / "slurm-srun-venv.sh", files["jobs/j002-n2/job.sh"].decode())
    nodes = RunSpec.parse(files["jobs/j002-n2/specs/nodes.json"].decode())
    assert (nodes.nodes, nodes.run, nodes.workloads, nodes.memory_limit) == (2, "0123456789ab", [], 2**30)
    assert nodes.env["UCX_PROTO_ENABLE"] == "n"
    assert nodes.env["UCX_OF_AN_ISSUE"] == "y"


def test_the_script_passes_shellcheck(tmp_path: Path) -> None:
    check_shell(tmp_path / "job.sh", render_cluster_job(record(), FURTHER, TEMPLATES, "hash")["jobs/j002-n2/job.sh"])
    check_shell(tmp_path / "client.sh", client_script(record(protocol="tls")), "--shell=bash")


def test_what_a_client_sources_sets_what_the_cluster_has_and_survives_odd_paths(tmp_path: Path) -> None:
    script = tmp_path / "client.sh"
    script.write_bytes(client_script(record(protocol="tls")))
    python = f"{sys.executable} -I -c 'import json, os; print(json.dumps(dict(os.environ)))'"
    done = subprocess.run(["bash", "-c", f". {script}; {python}"], capture_output=True, text=True, check=True)
    env = json.loads(done.stdout)
    assert env["DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"] == "/shared/it's mine/clusters/mine/tls/client.key"
    assert env["UCX_PROTO_ENABLE"] == "n"
    assert env["PATH"].startswith(f"{Path(image('1.19.0').python).parent}:")


def test_keys_are_named_under_tls_only() -> None:
    def nodes(protocol: str) -> RunSpec:
        files = render_cluster_job(record(protocol=protocol), FURTHER, TEMPLATES, "hash")
        return RunSpec.parse(files["jobs/j002-n2/specs/nodes.json"].decode())

    assert nodes("tls").env["DASK_DISTRIBUTED__COMM__TLS__WORKER__KEY"].endswith("/tls/cluster.key")
    assert nodes("tls").protocol == "tls"
    assert not [name for name in nodes("tcp").env if "TLS__" in name]
    compile("\n".join(client_lines(record())), "client", "exec")


def on_kubernetes(*settings: str) -> ClusterRecord:
    found = image("1.19.0").model_copy(update={"kind": "docker", "reference": "registry.example/b@sha256:1"})
    return record(
        site=load_site("kubernetes", list(settings)), image=found, directory="/home/me/my out #1/clusters/mine"
    )


def test_on_kubernetes_a_further_job_is_one_container_that_sees_the_claim_under_the_users_path() -> None:
    claimed = on_kubernetes("kubernetes.claim=results", "kubernetes.claim_folder=a/b", "kubernetes.run_as_user=7")
    files = render_cluster_job(claimed, FURTHER, TEMPLATES, "hash")
    text = files["jobs/j002-n2/job.yaml"].decode()
    check_golden(GOLDEN / "kubernetes-indexed-job-pod.yaml", text)
    (job,) = yaml.safe_load_all(text)
    pod = job["spec"]["template"]["spec"]
    (only,) = pod["containers"]
    assert only["command"][:3] == [claimed.image.python, "-I", "/home/me/my out #1/clusters/mine/node.pyz"]
    assert {"name": "outputs", "mountPath": "/home/me/my out #1", "subPath": "a/b"} in only["volumeMounts"]
    nodes = RunSpec.parse(files["jobs/j002-n2/specs/nodes.json"].decode())
    assert nodes.deadlines.start_s == claimed.site.limits.start + claimed.site.kubernetes.start


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("settings", [("kubernetes.claim=results",), EVERYTHING], ids=["a-claim", "everything"])
def test_on_kubernetes_the_object_is_valid_in_the_strictest_reading_of_a_release(
    settings: tuple[str, ...], release: str
) -> None:
    files = render_cluster_job(on_kubernetes(*settings), FURTHER, TEMPLATES, "hash")
    (job,) = yaml.safe_load_all(files["jobs/j002-n2/job.yaml"])
    kubernetes_validate.validate(job, release, strict=True)


def test_pods_that_share_no_claim_can_hold_no_cluster() -> None:
    with pytest.raises(PlanRefusedError, match=r"site kubernetes has no kubernetes\.claim, .*; name a ReadWriteMany"):
        render_cluster_job(on_kubernetes(), FURTHER, TEMPLATES, "hash")
