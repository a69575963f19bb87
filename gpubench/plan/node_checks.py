"""Checks of the reports that a site's nodes left, outside and inside of an image. Pure."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

from gpubench.model.site import Site
from gpubench.plan.check_result import CheckResult
from gpubench.plan.image_checks import OVER_VERBS

HostFacts = Mapping[str, str]
"""One node's, by name; all are text, empty where the node has no such thing."""
_DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1")


def parse_facts(text: str) -> dict[str, str]:
    """Lines of a name and a value."""
    pairs = (line.partition(" ") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs if name}


def check_nodes(site: Site, nodes: int, hosts: Sequence[HostFacts], token: str) -> Iterator[CheckResult]:
    """Checks of the nodes' own reports.

    Args:
        hosts: the facts of every node that left some.
        token: the text that the login node wrote for them.
    """
    named = f": {', '.join(sorted(host.get('host', '?') for host in hosts))}" if hosts else ""
    yield CheckResult(len(hosts) == nodes, f"{site.launcher}: {len(hosts)} of {nodes} nodes left a file{named}")
    if not hosts:
        return
    check = functools.partial(_on_every_host, hosts)
    yield check("login", "a file of this machine is read on every node", lambda value: value == token)
    what = f"interface {site.interface} is on every node"
    yield check("interfaces", what, lambda value: site.interface in _listed(value))
    yield check("addresses", f"interface {site.interface} has an address", bool)
    if site.node.gpus:
        yield check("gpus", f"{site.node.gpus} GPUs on every node", lambda value: value == str(site.node.gpus))
    busy = site.layout.workers * site.layout.threads
    enough = f"cores for {busy} worker threads"
    yield check("cores", enough, lambda value: value.isdigit() and int(value) >= busy)
    yield check("scratch", "the directory for scratch files can be written on every node", bool)
    if site.image.fabric:
        yield check("memlock", "memlock is unlimited, as NICs need it", lambda value: value == "unlimited")
    else:
        limits = ", ".join(sorted({host.get("memlock", "") for host in hosts}))
        yield CheckResult(True, f"memlock {limits} (no fabric asked for)")
    for module in site.setup.modules:
        yield check("modules", f"module {module} is loaded", functools.partial(_is_loaded, module))
    if site.image.fabric:
        yield check("fabric", "NICs in /dev/infiniband on every node", lambda value: bool(_listed(value)))


def check_images(site: Site, hosts: Sequence[HostFacts], inside: Sequence[HostFacts] | None) -> Iterator[CheckResult]:
    """What nodes see inside an image; ``inside`` is None where no image was looked into."""
    if inside is None:
        yield CheckResult(None, "what UCX sees: name a version whose image is there, with --ucx")
        return
    yield CheckResult(
        len(inside) == len(hosts), f"{site.runtime}: the image started on {len(inside)} of {len(hosts)} nodes"
    )
    if not inside:
        return
    check = functools.partial(_on_every_host, inside)
    if site.image.fabric:
        yield check("fabric", "NICs in /dev/infiniband inside the image", lambda value: bool(_listed(value)))
    if site.has_gpus:
        yield check("driver", "the GPU driver's libraries inside the image", lambda value: value.split() == [*_DRIVER])
    if not all("ucx" in host for host in inside):
        yield CheckResult(None, "what UCX sees: the image has no ucx_info")
        return
    if site.image.fabric:
        yield check("ucx", "UCX sees a NIC", lambda value: any(word.startswith(OVER_VERBS) for word in value.split()))
    else:
        device = f"tcp/{site.interface}"
        yield check("ucx", f"UCX sees {device}", lambda value: device in value.split())
    if site.has_gpus:
        yield check("ucx", "UCX sees GPU memory (cuda_copy/cuda)", lambda value: "cuda_copy/cuda" in value.split())


def _on_every_host(hosts: Sequence[HostFacts], fact: str, what: str, holds: Callable[[str], bool]) -> CheckResult:
    """Whether the value of ``fact`` (empty where a host has none) holds on every host, else which have another."""
    wrong = [host for host in hosts if not holds(host.get(fact, ""))]
    if not wrong:
        return CheckResult(True, what)
    facts = "; ".join(f"{host.get('host', '?')} has {host.get(fact) or 'nothing'}" for host in wrong)
    return CheckResult(False, f"{what}: {facts}")


def _listed(value: str) -> list[str]:
    return [word for word in (part.strip() for part in value.split(",")) if word]


def _is_loaded(module: str, value: str) -> bool:
    return any(name == module or name.startswith(f"{module}/") for name in value.split(":"))
