"""Workloads whose processes run in pods of their own, which the run's pod starts: checks that this works. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from gpubench.errors import PlanRefusedError
from gpubench.model.site import Site
from gpubench.node.spec import WorkloadSpec

SCHEDULER = "kubernetes"
PROVIDER = "kubernetes"
NEEDED = ("parsl", "kubernetes")
"""Packages of an image."""


def starts_pods(workloads: Iterable[WorkloadSpec]) -> bool:
    """Whether one of them has parsl start its blocks as pods."""
    return any(item.backend == "parsl" and item.params.get("parsl_provider") == PROVIDER for item in workloads)


def check_block_pods(site: Site, workloads: Iterable[WorkloadSpec]) -> None:
    """Raise PlanRefusedError where a workload wants pods of its own on a site that has none."""
    if site.scheduler != SCHEDULER and starts_pods(workloads):
        raise PlanRefusedError(
            f'site {site.name}: parsl_provider = "{PROVIDER}" starts pods beside the run\'s, and scheduler '
            f"{site.scheduler} has none",
            then='take a site with scheduler kubernetes, or parsl_provider = "local" or "slurm"',
        )


def check_images_of_block_pods(workloads: Iterable[WorkloadSpec], manifests: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise PlanRefusedError where an image that is known can't start them; ``manifests`` by UCX spec."""
    if not starts_pods(workloads):
        return
    for spec, manifest in manifests.items():
        lacks = [name for name in NEEDED if name not in manifest["stack"]["packages"]]
        if lacks:
            raise PlanRefusedError(
                f'parsl_provider = "{PROVIDER}" needs {" and ".join(NEEDED)} in every image, and that of {spec} lacks '
                f"{' and '.join(lacks)}",
                then="build it again with a current stack (gpubench images build), or take another provider",
            )
