"""How a stack's processes wait for messages: by polling, or asleep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.images.compatibility import stacks
from gpubench.model.site import Site

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
        return _waits(site, DEFAULT, {})
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
    return _waits(site, EVENT, env)


def event_environment() -> dict[str, str]:
    """The variables; the stacks that can wait asleep all take the same ones."""
    return next(dict(row.event.env) for row in stacks() if row.event)


def _can_sleep(manifest: Mapping[str, Any]) -> bool:
    binding = manifest["binding"]
    known = {(row.binding, row.binding_version) for row in stacks() if row.event}
    return (binding["name"], binding["version"]) in known


def _waits(site: Site, waiting: str, env: Mapping[str, str]) -> Site:
    layout = site.layout.model_copy(update={"waiting": waiting})
    return site.model_copy(update={"layout": layout, "env": {**site.env, **env}})
