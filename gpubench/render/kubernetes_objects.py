"""What the object file of a job holds: names, containers in the order in which they run, files for the nodes."""

import base64
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.errors import PlanRefusedError
from gpubench.model.image import UNRESOLVED, Image
from gpubench.model.plan import Plan, PlannedBlock, PlannedJob, PlannedRun
from gpubench.model.quantities import format_bytes
from gpubench.model.site import Site
from gpubench.node.spec.plain import content_id
from gpubench.plan.block_pods import starts_pods
from gpubench.render.node_half import NODE_HALF, zipped
from gpubench.runtimes import RUNTIMES

MOST_FILES = 1024 * 1024
"""Bytes that a ConfigMap may hold. https://kubernetes.io/docs/concepts/configuration/configmap/#motivation"""
FILES = "campaign.zip"
UNPACKED = "/run/gpubench/campaign"
PACKED = "/run/gpubench/files"
UNPACK = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])"
LONGEST_NAME = 44
"""Of the readable part: host names of pods are NAME-INDEX, and may have 63 letters."""
POD_VARIABLE = "GPUBENCH_POD_NAME"
BLOCK_PODS_VARIABLE = "GPUBENCH_BLOCK_PODS"
CLIENT_VARIABLES = (POD_VARIABLE, "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
"""What a process needs of its pod's environment to talk to the cluster about it."""
SMALL = {"cpu": "100m", "memory": "128Mi"}
"""Of a container that measures nothing; a pod in which every request is its limit keeps its cores for itself."""
GIB, MIB = 1024**3, 1024**2


def objects(plan: Plan, job: PlannedJob, files: Mapping[str, bytes]) -> dict[str, Any]:
    """What ``kubernetes/job.yaml.j2`` needs beside what every job has.

    Args:
        job: of one block.
        files: that the nodes need, by path below the campaign.

    Raises:
        PlanRefusedError: they don't fit into a ConfigMap.
    """
    (block,) = job.blocks
    return {
        **of_any_job(plan.site, job.limit_s),
        "name": object_name(plan, job),
        "campaign": UNPACKED,
        "containers": _containers(plan, job, block),
        "files": _packed(files),
        "packed": PACKED,
        "standing": False,
        "starts_pods": starts_pods(plan.workloads),
    }


def of_any_job(site: Site, limit_s: float) -> dict[str, Any]:
    """What stands in every object file of a site, of a campaign's job or a standing cluster's."""
    settings = site.kubernetes
    return {
        "settings": settings,
        "shm": quantity(settings.shm or (site.node.memory or 0) // 2),
        "active_s": int(limit_s + settings.start),
        "grace_s": int(2 * site.limits.stop) + 30,
        "client": [*(("--context", settings.context) if settings.context else ()), "--namespace", settings.namespace],
    }


def block_pods(plan: Plan, job: PlannedJob, run: PlannedRun) -> dict[str, str]:
    """What a run that starts pods of its own must know of them, as a variable; see ``workloads/parsl_pods.py``."""
    if not starts_pods(plan.workloads):
        return {}
    settings = plan.site.kubernetes
    pods = {
        "namespace": settings.namespace,
        "container": container_name(run),
        "labels": {
            "app.kubernetes.io/name": "gpubench",
            "app.kubernetes.io/instance": object_name(plan, job),
            **settings.labels,
        },
        "annotations": settings.annotations,
        "start_s": settings.start,
    }
    return {BLOCK_PODS_VARIABLE: json.dumps(pods, sort_keys=True)}


def container_name(run: PlannedRun) -> str:
    return f"run-{run.order}"


def object_name(plan: Plan, job: PlannedJob) -> str:
    unique = {"campaign": plan.campaign, "at": plan.created_at, "seed": plan.seed, "job": job.job}
    return label(f"{plan.campaign}-{job.job}", unique)


def label(text: str, unique: Mapping[str, Any]) -> str:
    """A DNS label that nothing with another ``unique`` has, whatever ``text`` is."""
    plain = re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
    return f"g-{plain[-LONGEST_NAME:].strip('-')}-{content_id(dict(unique), 8)}"


def quantity(count: int) -> str:
    """Bytes as Kubernetes writes them, rounded down to whole MiB; empty for none: ``64Gi``, ``1536Mi``."""
    if count % GIB == 0:
        return f"{count // GIB}Gi" if count else ""
    return f"{count // MIB}Mi"


def measuring(site: Site) -> dict[str, str]:
    """What a container that has workers asks for, request and limit alike; none where the profile says nothing.

    Raises:
        PlanRefusedError: GPU workers, and no number of GPUs. A pod that asks for none may see all of its node's, also
            those of other pods: https://github.com/NVIDIA/k8s-device-plugin/issues/61
    """
    node, name = site.node, site.kubernetes.gpu_resource
    if site.device == "gpu" and not node.gpus:
        raise PlanRefusedError(f"device = gpu, and the pods would ask for no {name}", then="--set node.gpus=N")
    amounts = {"cpu": str(node.cores or ""), "memory": quantity(node.memory or 0), name: str(node.gpus or "")}
    amounts |= {key: str(count) for key, count in sorted(site.kubernetes.resources.items())}
    return {key: value for key, value in amounts.items() if value}


def container(
    site: Site, name: str, image: Image, arguments: Sequence[str], resources: Mapping[str, str]
) -> dict[str, Any]:
    """One container, as the template takes it: what the image's Python is given to do."""
    command = RUNTIMES[site.runtime].command(image, arguments)
    return {"name": name, "image": image.reference, "command": command, "resources": dict(resources)}


def image_of(plan: Plan, run: PlannedRun) -> Image:
    """That of the run's variant, or what stands for one that isn't built."""
    return next(variant.image for variant in plan.variants if variant.label == run.variant) or UNRESOLVED


def _containers(plan: Plan, job: PlannedJob, block: PlannedBlock) -> list[dict[str, Any]]:
    """Files out, every image in, all nodes there; then the runs; only the last one isn't an init container."""
    images = {run.variant: image_of(plan, run) for run in block.runs}
    by_reference = {image.reference: image for image in images.values()}
    first = images[block.runs[0].variant]
    node_half = f"{UNPACKED}/{NODE_HALF}"

    def small(name: str, image: Image, *arguments: str) -> dict[str, Any]:
        return container(plan.site, name, image, arguments, SMALL)

    def spec(run: PlannedRun) -> str:
        return f"{UNPACKED}/jobs/{job.job}/{block.spec_path(run)}"

    others = [image for reference, image in by_reference.items() if reference != first.reference]
    resources = measuring(plan.site)
    runs = []
    for run in block.runs:
        why = plan.skip_reason(job.nodes, run.variant)
        arguments = ["pod", "run", "--spec", spec(run), *(("--skip", why) if why else ())]
        image, name = images[run.variant], container_name(run)
        runs.append(container(plan.site, name, image, [node_half, *arguments], resources))
    deadline = str(int(plan.site.kubernetes.start))
    return [
        small("unpack", first, "-c", UNPACK, f"{PACKED}/{FILES}", UNPACKED),
        *(small(f"image-{number}", image, "-c", "pass") for number, image in enumerate(others, start=1)),
        small("arrive", first, node_half, "pod", "arrive", "--spec", spec(block.runs[0]), "--deadline", deadline),
        *runs,
        small("end", first, node_half, "pod", "end"),
    ]


def _packed(files: Mapping[str, bytes]) -> str:
    """A zip archive in base64; bzip2, which gives the same bytes everywhere."""
    packed = zipped(files, zipfile.ZIP_BZIP2)
    if len(packed) + len(FILES) > MOST_FILES:
        plain = sum(len(data) for data in files.values())
        raise PlanRefusedError(
            f"{len(files)} files of {format_bytes(plain)} are {len(packed)} bytes when packed, "
            f"and a ConfigMap holds {MOST_FILES}",
            then="take fewer variants or workloads",
        )
    return base64.b64encode(packed).decode("ascii")
