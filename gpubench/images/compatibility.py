"""Which Python stack carries which UCX: the table ``docker/compatibility.toml``, and what it says about a site."""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pydantic

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.images.ucx_specs import RequestedUcx
from gpubench.images.wheels import releases
from gpubench.model.base import Settings
from gpubench.model.site import Site
from gpubench.model.text import version_key
from gpubench.resources import docker_file
from gpubench.runtimes import RUNTIMES

_TABLE = "compatibility.toml"

_RELEASE = re.compile(r"\d+\.\d+\.\d+")


class Range(Settings):
    """Versions from ``min`` to ``max``, both included."""

    min: str
    max: str

    def holds(self, release: str) -> bool:
        """Whether ``release`` lies inside; ``1.14`` stands for all of 1.14, and lies inside where one of them does."""
        key = version_key(release)
        low, high = (version_key(end)[: len(key)] for end in (self.min, self.max))
        return low <= key <= high

    def __str__(self) -> str:
        return self.min if self.min == self.max else f"{self.min} to {self.max}"


class SupportedUcx(Range):
    """What really runs; ``declared`` is the binding's own, narrower pin; ``tested`` are releases that moved data.

    ``unreleased``: branches without a number (``master``) are tried too; the build shows whether they work.
    """

    declared: str
    tested: list[str] = pydantic.Field(default_factory=list)
    unreleased: bool = False


class Sets(Settings):
    """``variable`` = ``value``, set by the binding itself where the UCX that it finds is older than ``below``."""

    variable: str
    value: str
    below: str
    source: str


class Event(Settings):
    """``env`` makes processes that wait for messages sleep; ``source`` says why we believe that they don't hang."""

    env: dict[str, str]
    source: str


class Stack(Settings):
    """One row: a Python stack without UCX, locked. ``source`` says why we believe the row.

    Args:
        packages: ``wheels`` from a hashed lock, or ``conda`` with exact versions.
        gpu_lock: takes the place of ``lock`` where there are GPUs; empty: there is none.
        architectures: for which the packages exist, as ``uname -m`` says it.
        cuda: releases that the packages run on; None: they hold nothing of CUDA.
        compute_capability: the least that the packages run on; empty: they hold nothing of CUDA.
        ucx: None: no binding, so no UCX.
        sets: what the binding sets on its own.
        event: how its processes wait without polling; None: they can't, or not reliably.
    """

    name: str
    packages: Literal["wheels", "conda"] = "wheels"
    binding: str
    binding_version: str = ""
    dask: str
    rapids: str = ""
    lock: str
    gpu_lock: str = ""
    scheme: str
    python: Range
    architectures: list[str]
    cuda: Range | None = None
    compute_capability: str = ""
    ucx: SupportedUcx | None = None
    sets: list[Sets] = pydantic.Field(default_factory=list)
    event: Event | None = None
    source: str

    @property
    def lock_file(self) -> Path:
        return docker_file(self.lock)

    def on_gpus(self, has_gpus: bool) -> "Stack":
        """This stack with what GPU workers load, if the site has GPUs and the table a lock for them; else as it is."""
        return self.model_copy(update={"lock": self.gpu_lock}) if has_gpus and self.gpu_lock else self

    def runs(self, release: str) -> bool:
        return self.ucx is not None and self.ucx.holds(release)


class Dropped(Settings):
    """CUDA releases after ``cuda_max`` don't run on GPUs below ``below``."""

    below: str
    cuda_max: str
    source: str


class BasePython(Settings):
    """The Python of a distribution: bases whose name holds ``name``, less its colon, have it as ``python3``."""

    name: str
    python: str


class _Table(Settings):
    dropped: list[Dropped]
    base: list[BasePython]
    stack: list[Stack] = pydantic.Field(min_length=1)


@functools.cache
def _table() -> _Table:
    path = docker_file(_TABLE)
    return _Table.load(path.read_text("utf-8"), str(path))


def stacks() -> tuple[Stack, ...]:
    """The table's rows in order of preference."""
    return tuple(_table().stack)


def newest_cuda(driver: str, compute_capability: str) -> str:
    """The newest CUDA release for a driver that runs ``driver`` at most and such GPUs; empty without CUDA."""
    ends = [driver] if driver else []
    if ends and compute_capability:
        ends += [row.cuda_max for row in _table().dropped if version_key(compute_capability) < version_key(row.below)]
    return min(ends, key=version_key, default="")


def base_python(base: str) -> str:
    """The minor of the Python that a base image's distribution has; empty where its name doesn't tell.

    Of a distribution's own image and of NVIDIA's: any other may have a Python of its own.
    """
    name, _, tag = base.rpartition("/")[2].partition(":")
    if name in _DISTRIBUTIONS:
        tag_or_distribution = f"{name}{tag}"
    elif base.partition(":")[0].endswith("nvidia/cuda"):
        tag_or_distribution = tag
    else:
        return ""
    return next((row.python for row in _table().base if row.name in tag_or_distribution), "")


_DISTRIBUTIONS = ("debian", "ubuntu")


def choose(releases: Sequence[str], table: Sequence[Stack] | None = None) -> Stack:
    """The first stack of wheels that can run each of these releases: one campaign, one stack.

    Raises:
        PlanRefusedError: a release that no stack runs (names the nearest that one can), or no stack for all together.
    """
    rows = [row for row in (stacks() if table is None else table) if row.packages == "wheels" and row.ucx is not None]
    for stack in rows:
        if all(stack.runs(release) for release in releases):
            return stack
    can = "; ".join(f"stack {stack.name} runs UCX {stack.ucx}" for stack in rows)
    for release in releases:
        if not any(stack.runs(release) for stack in rows):
            nearest = nearest_release(release, rows)
            raise PlanRefusedError(f"no Python stack runs UCX {release} ({can})", then=f"nearest: {nearest}")
    raise PlanRefusedError(
        f"no Python stack runs UCX {', '.join(releases)} together ({can})",
        then="compare versions that share a stack: with two stacks UCX isn't the only thing that differs",
    )


def nearest_release(release: str, rows: Sequence[Stack]) -> str:
    """The release nearest to ``release`` (upwards first) that one of ``rows`` runs."""
    ends = {end for row in rows if row.ucx for end in (row.ucx.min, row.ucx.max)}
    runnable = sorted(
        {candidate for candidate in {*releases(), *ends} if any(row.runs(candidate) for row in rows)}, key=version_key
    )
    newer = [candidate for candidate in runnable if version_key(candidate) > version_key(release)]
    return newer[0] if newer else runnable[-1]


def admitted(rows: Sequence[Stack], site: Site) -> list[Stack]:
    """The rows whose packages run on the site's nodes, in the table's order."""
    return [row for row in rows if not objection(row, site)]


def objection(row: Stack, site: Site) -> str:
    """Why a row's packages don't run on the site's nodes; empty: they do."""
    image = site.image
    if image.architecture not in row.architectures:
        return f"there are no packages for {image.architecture}, only for {' and '.join(row.architectures)}"
    gpu, driver = image.compute_capability, newest_cuda(image.cuda, image.compute_capability)
    if gpu and row.compute_capability and version_key(gpu) < version_key(row.compute_capability):
        return f"RAPIDS {row.rapids} needs compute capability {row.compute_capability}, the GPUs have {gpu}"
    if driver and row.cuda and version_key(driver) < version_key(row.cuda.min):
        return f"it needs CUDA {row.cuda.min}, driver and GPUs run {driver} at most"
    python = base_python(image.base) if in_containers(site) and row.packages == "wheels" else ""
    if python and not row.python.holds(python):
        return f"it needs Python {row.python}, image.base {image.base} has {python}"
    return ""


def in_containers(site: Site) -> bool:
    """Whether images of the site begin with ``image.base``."""
    return site.runtime in RUNTIMES and RUNTIMES[site.runtime].KIND in ("docker", "squashfs")


def runs(row: Stack, ucx: RequestedUcx) -> bool:
    """Whether the row can carry what a spec asks for; a UCX without a number is tried where the row says so."""
    if ucx.kind == "none":
        return True
    if row.ucx is None:
        return False
    if ucx.kind == "distribution":
        return row.packages == "wheels"  # a distribution's UCX comes without what a binding is compiled against
    if not ucx.release:
        return row.ucx.unreleased
    return row.ucx.holds(ucx.release)


def refusal(
    spec: str, ucx: RequestedUcx, rows: Sequence[Stack], candidates: Sequence[Stack], site: Site
) -> PlanRefusedError:
    """Says why no row will do, and the nearest that would."""
    reasons = [f"stack {row.name}: {objection(row, site) or _range(row)}" for row in rows]
    what = f"no stack can run UCX '{spec}' on site {site.name} ({'; '.join(reasons)})"
    if not candidates:
        others = admitted(stacks(), site)
        if others:
            return PlanRefusedError(what, then=f"nearest: stack {others[0].name} ({_range(others[0])})")
        return PlanRefusedError(what, then="use the site's own software: an image of kind modules or conda")
    bound = [row for row in candidates if row.ucx]
    if not bound:
        return PlanRefusedError(what, then="nearest: none, which runs protocol tcp")
    near = nearest_release(ucx.release or releases()[-1], bound)
    row = next(row for row in bound if row.runs(near))
    return PlanRefusedError(what, then=f"nearest: {near} (stack {row.name})")


def _range(row: Stack) -> str:
    return f"runs UCX {row.ucx}" if row.ucx else "has no binding for UCX"


def set_by_binding(stack: str, ucx_version: str) -> dict[str, str]:
    """Variables that appear by themselves in processes of ``stack`` that load ``ucx_version``.

    None for a stack that the table doesn't hold, or for a UCX without a number.
    """
    release = _RELEASE.match(ucx_version)
    if release is None:
        return {}
    sets = [setting for row in stacks() if row.name == stack for setting in row.sets]
    return {setting.variable: setting.value for setting in sets if version_key(release[0]) < version_key(setting.below)}


AUTO, DEFAULT, EVENT = "auto", "default", "event"


def with_waiting(site: Site, protocol: str, manifests: Mapping[str, Mapping[str, Any]]) -> Site:
    """The profile with what ``layout.waiting`` sets in every process of a run, and without ``auto``.

    Args:
        protocol: with TCP processes sleep anyway.
        manifests: of the images that are known already, by UCX spec.

    Raises:
        UsageError: processes are to sleep, and the profile's own ``env`` says otherwise.
        PlanRefusedError: processes are to sleep, and an image's binding can't let them.
    """
    waiting = site.layout.waiting
    if waiting == DEFAULT or (waiting == EVENT and protocol != "ucx"):
        return site
    env = event_environment()
    polling = next((spec for spec, manifest in manifests.items() if not _can_sleep(manifest)), None)
    other = next((name for name, value in env.items() if site.env.get(name, value) != value), None)
    if waiting == AUTO and (protocol != "ucx" or polling or other):
        return site.with_layout(waiting=DEFAULT)
    if other:
        raise UsageError(
            f"site {site.name}: layout.waiting = event sets {other}={env[other]}, and env says {site.env[other]}",
            then="remove one of the two",
        )
    if polling:
        binding = manifests[polling]["binding"]
        raise PlanRefusedError(
            f"layout.waiting = event: processes of {polling} would poll all the same, or could hang: "
            f"{binding['name']} {binding['version']} isn't known to wait by events",
            then='take layout.waiting = "default"',
        )
    return site.with_layout(waiting=EVENT).model_copy(update={"env": {**site.env, **env}})


def event_environment() -> dict[str, str]:
    """The variables; the stacks that can wait asleep all take the same ones."""
    return next(dict(row.event.env) for row in stacks() if row.event)


def _can_sleep(manifest: Mapping[str, Any]) -> bool:
    binding = manifest["binding"]
    sleeping = {(row.binding, row.binding_version) for row in stacks() if row.event}
    return (binding["name"], binding["version"]) in sleeping
