"""What the nodes of a site said about themselves, against its profile. Pure: facts in, findings out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

from gpubench.model.site import Site
from gpubench.plan.site_checks import SiteFinding

Facts = Mapping[str, str]
"""One node's, by name; all are text, empty where the node has no such thing."""
_FABRIC_TRANSPORTS = ("dc", "rc", "ud")


def parse_facts(text: str) -> dict[str, str]:
    """Lines of a name and a value."""
    pairs = (line.partition(" ") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs if name}


def check_nodes(site: Site, nodes: int, hosts: Sequence[Facts], token: str) -> Iterator[SiteFinding]:
    """What the nodes themselves say.

    Args:
        site: the profile.
        nodes: how many were asked for.
        hosts: the facts of every node that left some.
        token: what the login node had written for them.
    """
    yield SiteFinding(len(hosts) == nodes, f"{site.launcher}: {len(hosts)} of {nodes} nodes left a file{_named(hosts)}")
    if not hosts:
        return
    yield _each(hosts, "a file of this machine is read on every node", lambda one: one.get("login") == token, "login")
    yield _each(
        hosts,
        f"interface {site.interface} is on every node",
        lambda one: site.interface in _listed(one, "interfaces"),
        "interfaces",
    )
    yield _each(
        hosts, f"interface {site.interface} has an address", lambda one: bool(one.get("addresses")), "addresses"
    )
    if site.node.gpus:
        yield _each(
            hosts, f"{site.node.gpus} GPUs on every node", lambda one: one.get("gpus") == str(site.node.gpus), "gpus"
        )
    yield from _cores_and_memory(site, hosts)
    for module in site.setup.modules:
        yield _each(hosts, f"module {module} is loaded", functools.partial(_loaded, module), "modules")
    if site.image.fabric:
        yield _each(hosts, "NICs in /dev/infiniband on every node", lambda one: bool(_listed(one, "fabric")), "fabric")


def check_images(site: Site, hosts: Sequence[Facts], inside: Sequence[Facts] | None) -> Iterator[SiteFinding]:
    """What nodes see inside an image; ``inside`` is None where no image was looked into."""
    if inside is None:
        yield SiteFinding(None, "what UCX sees: name a version whose image is there, with --ucx")
        return
    yield SiteFinding(
        len(inside) == len(hosts), f"{site.runtime}: the image started on {len(inside)} of {len(hosts)} nodes"
    )
    if not inside:
        return
    if site.image.fabric:
        yield _each(
            inside, "NICs in /dev/infiniband inside the image", lambda one: bool(_listed(one, "fabric")), "fabric"
        )
    if not all("ucx" in one for one in inside):
        yield SiteFinding(None, "what UCX sees: the image has no ucx_info")
    elif site.image.fabric:
        yield _each(inside, "UCX sees a NIC", _sees_fabric, "ucx")
    else:
        device = f"tcp/{site.interface}"
        yield _each(inside, f"UCX sees {device}", lambda one: device in one["ucx"].split(), "ucx")


def _cores_and_memory(site: Site, hosts: Sequence[Facts]) -> Iterator[SiteFinding]:
    busy = site.layout.workers * site.layout.threads
    yield _each(
        hosts,
        f"cores for {busy} worker threads",
        lambda one: one.get("cores", "").isdigit() and int(one["cores"]) >= busy,
        "cores",
    )
    if site.image.fabric:
        yield _each(
            hosts, "memlock is unlimited, as NICs want it", lambda one: one.get("memlock") == "unlimited", "memlock"
        )
    else:
        yield SiteFinding(
            True, f"memlock {', '.join(sorted({one.get('memlock', '') for one in hosts}))} (no fabric asked for)"
        )


def _each(hosts: Sequence[Facts], what: str, holds: Callable[[Facts], bool], fact: str) -> SiteFinding:
    wrong = [one for one in hosts if not holds(one)]
    if not wrong:
        return SiteFinding(True, what)
    said = "; ".join(f"{one.get('host', '?')} has {one.get(fact) or 'nothing'}" for one in wrong)
    return SiteFinding(False, f"{what}: {said}")


def _named(hosts: Sequence[Facts]) -> str:
    return f": {', '.join(sorted(one.get('host', '?') for one in hosts))}" if hosts else ""


def _listed(facts: Facts, name: str) -> list[str]:
    return [word for word in (part.strip() for part in facts.get(name, "").split(",")) if word]


def _loaded(module: str, facts: Facts) -> bool:
    loaded = facts.get("modules", "").split(":")
    return any(one == module or one.startswith(f"{module}/") for one in loaded)


def _sees_fabric(facts: Facts) -> bool:
    return any(device.startswith(_FABRIC_TRANSPORTS) for device in facts["ucx"].split())
