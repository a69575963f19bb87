"""Requests, images and plans with fixed values: nothing here depends on the machine, the clock or shipped profiles."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from gpubench.model.image import Image
from gpubench.model.plan import Plan
from gpubench.model.site import Site
from gpubench.model.variant import Variant, parse_variants
from gpubench.node.spec import WorkloadSpec
from gpubench.node.spec.plain import content_id
from gpubench.plan.make import make_plan
from gpubench.plan.request import Request
from gpubench.plan.request_checks import plan_clusters
from gpubench.plan.scope import plan_scope

SITE = """
name = "bench"
scheduler = "local"
launcher = "fork"
runtime = "venv"
device = "cpu"
interface = "lo"
env_allow = ["PATH", "LANG"]
expect_transport = ["tcp"]
[env]
UCX_TLS = "tcp"
[layout]
workers = 2
one_machine = true
[estimates]
run = "4s"
workload = "2s"
"""

GIB = 1024**3


def site(more: str = "", **changes: Any) -> Site:
    """The profile above, with TOML appended and fields replaced."""
    return Site.load(SITE + more, "bench.toml").model_copy(update=changes)


def image(version: str) -> Image:
    """An image whose paths are the same on every machine."""
    return Image(
        kind="venv",
        id=content_id({"image": version}, 16),
        ucx_spec=version,
        ucx_version=version,
        binding="ucxx",
        python="/images/stack/bin/python",
        env={"LD_LIBRARY_PATH": f"/images/ucx/{version}/lib"},
        manifest=content_id({"manifest": version}, 16),
    )


def workload(name: str = "tasks", reps: int = 3, **params: Any) -> WorkloadSpec:
    return WorkloadSpec(name=name, backend="dask", params=params or {"count": 5}, reps=reps, warmup=1, timeout_s=30.0)


def variants(words: str) -> list[Variant]:
    return parse_variants(words.split())


def request(words: str = "old=1.17.0 new=1.19.0", **changes: Any) -> Request:
    """A request for these variants; every field can be replaced, and the site's device."""
    profile = changes.pop("site", None) or site()
    if "device" in changes:
        profile = profile.model_copy(update={"device": changes.pop("device")})
    base = Request(
        gpubench="0.1",
        site=profile,
        suite="mine",
        workloads=[workload(), workload("message", 5, size=1024, round_trips=2)],
        variants=variants(words),
        nodes=[1],
        blocks=6,
        seed=7,
        protocol="ucx",
        margin=profile.defaults.margin,
        machine_cores=8,
        machine_memory=16 * GIB,
    )
    return dataclasses.replace(base, **changes)


def plan(
    words: str = "old=1.17.0 new=1.19.0",
    *,
    campaign: str = "bench-q-1",
    created_at: str = "2026-11-20T12:00:00+00:00",
    images: Mapping[str, Image | None] | None = None,
    **changes: Any,
) -> Plan:
    """The plan of a request for these variants, with an image for each unless others are given."""
    made = request(words, **changes)
    if images is None:
        images = {variant.ucx: image(variant.ucx) for variant in variants(words)}
    made, clusters = plan_clusters(made)
    return make_plan(made, plan_scope(made, clusters), campaign=campaign, created_at=created_at, images=images)
