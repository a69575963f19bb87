"""Object files for Kubernetes: what the schemas of its releases say of them, and what a job on Slurm would be."""

import base64
import io
import random
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gpubench import resources
from gpubench.errors import PlanRefusedError
from gpubench.model.plan import Plan
from gpubench.model.quantities import parse_bytes
from gpubench.model.site import Node, Site
from gpubench.node.spec import RunSpec
from gpubench.render.kubernetes_objects import MOST_FILES, object_name
from gpubench.resources.profiles import load_site
from tests.plan.requests_by_hand import image, plan
from tests.rendering import render_jobs

TEMPLATES = resources.job_templates()
RELEASES = ("1.30", "1.33", "1.37")
VARIANTS = "a=1.17.0 b=1.19.0 c=1.17.0,UCX_TLS=sm,cuda"


def planned(*settings: str, **changes: Any) -> Plan:
    site = load_site("kubernetes", list(settings))
    images = {
        spec: image(spec).model_copy(update={"kind": "docker", "reference": f"registry.example/b@sha256:{spec}"})
        for spec in ("1.17.0", "1.19.0")
    }
    return plan(VARIANTS, **{"site": site, "images": images, "nodes": [2], "blocks": 2, **changes})


def objects(made: Plan, node_half: bytes = b"node half") -> Iterator[list[dict[str, Any]]]:
    """The objects of every job."""
    for name, data in render_jobs(made, made.jobs, TEMPLATES, node_half).items():
        if name.endswith("job.yaml"):
            yield list(yaml.safe_load_all(data))


def pod_of(found: list[dict[str, Any]]) -> dict[str, Any]:
    pod: dict[str, Any] = next(one for one in found if one["kind"] == "Job")["spec"]["template"]["spec"]
    return pod


EVERYTHING = (
    *("kubernetes.claim=results", "kubernetes.claim_folder=a/b", 'kubernetes.node_selector={pool="no"}'),
    *('kubernetes.tolerations=[{key="gpu", operator="Exists"}]', 'kubernetes.image_pull_secrets=["one"]'),
    *('kubernetes.labels={"team"="12"}', 'kubernetes.capabilities=["IPC_LOCK"]', "kubernetes.run_as_user=0"),
    *("node.gpus=8", "device=gpu", "env.UCX_TLS=all", "layout.workers=8"),
    *("kubernetes.context=x", "kubernetes.host_network=true"),
    *("kubernetes.runtime_class=nvidia", "kubernetes.priority_class=high", "kubernetes.service_account=bench"),
    *('kubernetes.annotations={"k8s.v1.cni.cncf.io/networks"="ib0"}', 'kubernetes.resources={"rdma/hca"=1}'),
)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("settings", [(), EVERYTHING], ids=["as-shipped", "everything"])
def test_every_object_is_valid_in_the_strictest_reading_of_a_release(settings: tuple[str, ...], release: str) -> None:
    for found in objects(planned(*settings)):
        assert [one["kind"] for one in found][:2] == ["Service", "Job"]
        for one in found:
            kubernetes_validate.validate(one, release, strict=True)


def test_what_travels_is_the_node_half_and_the_specs_as_they_stand_in_the_campaign() -> None:
    made = planned()
    files = render_jobs(made, made.jobs, TEMPLATES, b"node half")
    for job, found in zip(made.jobs, objects(made), strict=True):
        packed = base64.b64decode(found[2]["binaryData"]["campaign.zip"])
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            inside = {name: archive.read(name) for name in archive.namelist()}
        specs = {name: data for name, data in files.items() if name.startswith(f"jobs/{job.job}/specs/")}
        assert inside == {**specs, "node.pyz": b"node half"}


def test_files_that_no_config_map_holds_are_refused_with_the_arithmetic() -> None:
    noise = random.Random(1).randbytes(MOST_FILES)
    said = rf"\d+ bytes when packed, and a ConfigMap holds {MOST_FILES}; take fewer"
    with pytest.raises(PlanRefusedError, match=said):
        list(objects(planned(), noise))


def test_names_are_labels_whatever_a_campaign_is_called_and_differ_between_campaigns() -> None:
    names = set()
    for campaign in ("bench", "Ben.ch_+" * 20, "a" * 200, "1", "bench."):
        made = planned(campaign=campaign)
        names |= {object_name(made, job) for job in made.jobs}
    assert len(names) == 10
    for name in names:
        assert re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])?", name)
        assert len(f"{name}-99999") <= 63


def test_text_that_yaml_would_read_as_something_else_stays_text() -> None:
    made = planned(
        'kubernetes.labels={"a"="no", "b"="1e3"}',
        'kubernetes.annotations={c="{x: y}"}',
        'kubernetes.node_selector={n="0x10"}',
    )
    for found in objects(made):
        labels = found[0]["metadata"]["labels"]
        assert [labels[key] for key in "ab"] == ["no", "1e3"]
        assert found[1]["spec"]["template"]["metadata"]["annotations"] == {"c": "{x: y}"}
        assert pod_of(found)["nodeSelector"] == {"n": "0x10"}


def test_what_real_clusters_want_of_pods_stands_where_kubernetes_looks_for_it() -> None:
    for found in objects(planned(*EVERYTHING)):
        pod = pod_of(found)
        assert (pod["runtimeClassName"], pod["priorityClassName"], pod["serviceAccountName"]) == (
            ("nvidia", "high", "bench")
        )
        assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
        assert found[1]["spec"]["template"]["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "ib0"}
        runs = {one["name"]: one["resources"] for one in pod["initContainers"] if one["name"].startswith("run-")}
        assert [one["limits"]["rdma/hca"] for one in runs.values()] == ["1"] * 3
    plain = pod_of(next(objects(planned())))
    assert not {"runtimeClassName", "hostNetwork", "dnsPolicy", "priorityClassName", "serviceAccountName"} & set(plain)


def on_slurm(site: Site) -> Site:
    """The same nodes under Slurm."""
    return load_site("local-slurm").model_copy(
        update={"layout": site.layout, "node": site.node, "device": site.device, "limits": site.limits}
    )


@pytest.mark.parametrize("memory", ["32GiB", "48.5GiB", "100GB"])
def test_the_same_matrix_has_the_same_processes_threads_and_memory_per_node_on_slurm_and_on_kubernetes(
    memory: str,
) -> None:
    site = load_site("kubernetes", ["layout.threads=2"]).model_copy(
        update={"node": Node(cores=16, memory=memory)}  # type: ignore[arg-type]
    )
    shapes, asked = [], []
    for one in (site, on_slurm(site)):
        made = planned(site=one, nodes=[1, 2, 4], workers=[2, 4], machine_memory=one.node.memory)
        files = render_jobs(made, made.jobs, TEMPLATES, b"node half")
        specs = [RunSpec.parse(data.decode(), name) for name, data in files.items() if name.endswith(".json")]
        shapes.append(
            sorted({(s.nodes, s.workers_per_node, s.threads_per_worker, s.memory_limit, s.device) for s in specs})
        )
        asked.append({name: data.decode() for name, data in files.items() if "/job." in name})
    assert shapes[0] == shapes[1]
    assert len(shapes[0]) == 6
    of_pods = {
        re.search(r'"memory": "(\d+[GM]i)"\}\n *limits', text.partition("name: run-0")[2])[1]
        for text in asked[0].values()
    }  # type: ignore[index]
    of_jobs = {re.search(r"#SBATCH --mem=(\d+)M", text)[1] for text in asked[1].values()}  # type: ignore[index]
    (pods,), (jobs,) = of_pods, of_jobs
    assert parse_bytes(f"{pods}B") == int(jobs) * 2**20


def test_gpu_workers_without_a_number_of_gpus_are_refused() -> None:
    """Their pods would get no GPU, or, under a default runtime that heeds the image's variable, those of others."""
    with pytest.raises(PlanRefusedError, match=r"the pods would ask for no nvidia\.com/gpu; --set node\.gpus=N"):
        list(objects(planned("device=gpu", "env.UCX_TLS=all")))
