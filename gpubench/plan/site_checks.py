"""Checks of a site: its profile by itself, its nodes' reports, paths that every node must see. Pure.

And of a standing cluster: the versions of its processes. Where its workers may run: ``cpu_affinity``.
"""

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpubench.errors import PlanRefusedError
from gpubench.model.quantities import format_bytes, format_seconds
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.plan.adapter_combinations import BRINGS_FILES, check_combination
from gpubench.plan.cpu_affinity import gpu_of
from gpubench.plan.feasibility import check_counts, interface_fault
from gpubench.plan.make import PROTOCOLS
from gpubench.plan.placement import check_placement, check_steps_of

_GROUPS = frozenset(
    ("all", "sm", "shm", "mm", "ib", *("rc", "rc_v", "rc_x", "ud", "ud_v", "ud_x", "dc", "dc_x"), "cuda", "rocm")
)
"""Words of UCX_TLS that stand for several transports, or for another name (UCX's FAQ): no run reports them."""
_NO_CUDA = frozenset(("debian", "ubuntu", "rockylinux", "almalinux", "centos", "fedora"))
"""Distributions' own images."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclasses.dataclass(frozen=True)
class SiteFinding:
    """One check. ``ok`` is None if it couldn't be made."""

    ok: bool | None
    what: str

    def __str__(self) -> str:
        return f"{ {True: 'ok', False: 'wrong', None: 'not checked'}[self.ok] }: {self.what}"


def check_site(site: Site) -> list[SiteFinding]:
    """All checks of a profile that don't need its machine."""
    fault = interface_fault(site.interface)
    known = site.protocol in PROTOCOLS
    return [
        _adapters(site),
        SiteFinding(known, f"protocol {site.protocol}" + ("" if known else f": there is {', '.join(PROTOCOLS)}")),
        SiteFinding(not fault, fault or f"interface {site.interface} can be the name of a network device"),
        *_network(site),
        *_shape(site),
        *_placement(site),
        *_time(site),
        *_words(site),
        *_paths(site),
    ]


def _network(site: Site) -> Iterator[SiteFinding]:
    """Whether UCX is told to use the interface that Dask uses; devices with a port (``mlx5_0:1``) have other names."""
    devices = [one.strip() for one in site.env.get("UCX_NET_DEVICES", "").split(",")]
    interfaces = [one for one in devices if one and ":" not in one and one != "all"]
    if interfaces and site.protocol == "ucx":
        same = not site.interface or site.interface in interfaces
        named = f"env.UCX_NET_DEVICES = {','.join(devices)}"
        differs = (
            f"{named} does not name interface {site.interface}: set both, unless UCX is meant to use another network"
        )
        yield SiteFinding(True, named) if same else SiteFinding(None, differs)


def _adapters(site: Site) -> SiteFinding:
    try:
        check_combination(site)
    except PlanRefusedError as error:
        return SiteFinding(False, str(error))
    return SiteFinding(True, f"{site.scheduler} + {site.launcher} + {site.runtime} go together")


def _shape(site: Site) -> Iterator[SiteFinding]:
    workers, threads, node = site.layout.workers, site.layout.threads, site.node
    try:
        check_counts(site, site.defaults.nodes, [workers])
    except PlanRefusedError as error:
        yield SiteFinding(False, str(error))
    busy = f"{workers} workers x {threads} threads = {workers * threads}"
    if node.cores:
        fits = workers * threads <= node.cores
        yield SiteFinding(
            fits, f"{busy} {'fit into' if fits else 'are more than'} the {node.cores} cores of node.cores"
        )
    else:
        yield SiteFinding(None, f"{busy} against cores: node.cores isn't set, a job gets what its scheduler gives")
    if site.device == "gpu":
        yield SiteFinding(
            workers == node.gpus, f"{workers} workers and {node.gpus} GPUs per node, a worker takes one GPU"
        )
    elif site.device == "cpu" and node.gpus:
        yield SiteFinding(False, f'node.gpus = {node.gpus} is asked for, but device = "cpu" uses none')
    memory = site.layout.memory
    if memory is not None and node.memory is not None:
        fits = memory <= node.memory
        yield SiteFinding(fits, f"layout.memory {'fits into' if fits else 'is more than'} node.memory")


def _placement(site: Site) -> Iterator[SiteFinding]:
    try:
        check_placement(site, site.device)
        lines = check_steps_of(site, site.defaults.nodes[-1], site.layout.workers)
    except PlanRefusedError as error:
        yield SiteFinding(False, str(error))
        return
    yield SiteFinding(True, f"scheduler on {site.layout.scheduler}, client on {site.layout.client}")
    yield from (SiteFinding(True, line) for line in lines)


def _time(site: Site) -> Iterator[SiteFinding]:
    limit, warning = site.limits.job, site.batch.warning
    words = f"batch.warning {format_seconds(warning)} and limits.job {format_seconds(limit)}"
    yield SiteFinding(warning < limit, f"{words}: the warning comes before the end")
    counts = site.defaults.nodes
    yield SiteFinding(
        sorted(set(counts)) == counts, f"default node counts {', '.join(map(str, counts))}: ascending, each once"
    )


def _words(site: Site) -> Iterator[SiteFinding]:
    bad = [option for option in site.batch.options if not option.startswith("-") or option != option.strip()]
    if site.batch.options:
        yield SiteFinding(not bad, f"batch.options: {', '.join(bad) + ' is no option' if bad else 'all are options'}")
    named = {"env": [*site.env], "env_allow": site.env_allow}
    wrong = [f"{key}: '{name}'" for key, names in named.items() for name in names if not _VARIABLE.fullmatch(name)]
    yield SiteFinding(not wrong, f"names of variables{': ' + ', '.join(wrong) if wrong else ''}")
    groups = [one for one in site.expect_transport if one in _GROUPS]
    if site.expect_transport:
        named_by_ucx = f"{', '.join(groups)} in UCX_TLS stands for several; name those that ucx_info -d lists"
        yield SiteFinding(not groups, f"expect_transport: {named_by_ucx if groups else 'names of single transports'}")
    mounts = [mount for mount in site.container.mounts if not 2 <= len(mount.split(":")) <= 3]
    if site.container.mounts:
        yield SiteFinding(
            not mounts, f"container.mounts{': not HOST:INSIDE[:ro]: ' + ', '.join(mounts) if mounts else ''}"
        )


def check_base(site: Site) -> Iterator[SiteFinding]:
    """Whether a container's base has the CUDA that the profile names; unknown for a base with a name of its own."""
    base, cuda = site.image.base, site.image.cuda
    name, _, tag = base.rpartition(":")
    if not cuda:
        return
    if name.rpartition("/")[2] in _NO_CUDA:
        yield SiteFinding(
            False, f"image.cuda = {cuda}, and image.base {base} has no CUDA: take one that has, like nvidia/cuda"
        )
    elif name.endswith("nvidia/cuda"):
        has = re.match(r"\d+\.\d+", tag)
        fits = has is not None and _release(has[0]) <= _release(cuda)
        yield SiteFinding(fits, f"image.base {base} {'has' if fits else 'is newer than'} image.cuda = {cuda}")
    else:
        yield SiteFinding(None, f"image.cuda = {cuda}: whether image.base {base} has it")


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _paths(site: Site) -> Iterator[SiteFinding]:
    relative = [path for path in site.paths.shared if not path.startswith(("/", "~", "$"))]
    if relative:
        yield SiteFinding(False, f"paths.shared: {', '.join(relative)} is no absolute path")
    elif site.paths.shared:
        yield SiteFinding(True, f"paths.shared: {', '.join(site.paths.shared)}")
    elif site.launcher in BRINGS_FILES:
        where = f"lie in the claim {site.kubernetes.claim}" if site.kubernetes.claim else "come home over a pod's log"
        yield SiteFinding(True, f"no shared file system is needed: jobs bring their files along, results {where}")
    elif not site.layout.one_machine:
        yield SiteFinding(None, "paths.shared is empty: it is unknown whether nodes see a campaign")


HostFacts = Mapping[str, str]
"""One node's, by name; all are text, empty where the node has no such thing."""
_FABRIC_TRANSPORTS = ("dc", "rc", "ud")


def parse_facts(text: str) -> dict[str, str]:
    """Lines of a name and a value."""
    pairs = (line.partition(" ") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs if name}


def check_nodes(site: Site, nodes: int, hosts: Sequence[HostFacts], token: str) -> Iterator[SiteFinding]:
    """Checks of the nodes' own reports.

    Args:
        hosts: the facts of every node that left some.
        token: the text that the login node wrote for them.
    """
    named = f": {', '.join(sorted(one.get('host', '?') for one in hosts))}" if hosts else ""
    yield SiteFinding(len(hosts) == nodes, f"{site.launcher}: {len(hosts)} of {nodes} nodes left a file{named}")
    if not hosts:
        return
    check = functools.partial(_each, hosts)
    yield check("login", "a file of this machine is read on every node", lambda value: value == token)
    there = f"interface {site.interface} is on every node"
    yield check("interfaces", there, lambda value: site.interface in _words_in(value))
    yield check("addresses", f"interface {site.interface} has an address", bool)
    if site.node.gpus:
        yield check("gpus", f"{site.node.gpus} GPUs on every node", lambda value: value == str(site.node.gpus))
    busy = site.layout.workers * site.layout.threads
    enough = f"cores for {busy} worker threads"
    yield check("cores", enough, lambda value: value.isdigit() and int(value) >= busy)
    if site.image.fabric:
        yield check("memlock", "memlock is unlimited, as NICs need it", lambda value: value == "unlimited")
    else:
        limits = ", ".join(sorted({one.get("memlock", "") for one in hosts}))
        yield SiteFinding(True, f"memlock {limits} (no fabric asked for)")
    for module in site.setup.modules:
        yield check("modules", f"module {module} is loaded", functools.partial(_is_loaded, module))
    if site.image.fabric:
        yield check("fabric", "NICs in /dev/infiniband on every node", lambda value: bool(_words_in(value)))


def check_images(site: Site, hosts: Sequence[HostFacts], inside: Sequence[HostFacts] | None) -> Iterator[SiteFinding]:
    """What nodes see inside an image; ``inside`` is None where no image was looked into."""
    if inside is None:
        yield SiteFinding(None, "what UCX sees: name a version whose image is there, with --ucx")
        return
    yield SiteFinding(
        len(inside) == len(hosts), f"{site.runtime}: the image started on {len(inside)} of {len(hosts)} nodes"
    )
    if not inside:
        return
    check = functools.partial(_each, inside)
    if site.image.fabric:
        yield check("fabric", "NICs in /dev/infiniband inside the image", lambda value: bool(_words_in(value)))
    if not all("ucx" in one for one in inside):
        yield SiteFinding(None, "what UCX sees: the image has no ucx_info")
    elif site.image.fabric:
        yield check(
            "ucx", "UCX sees a NIC", lambda value: any(word.startswith(_FABRIC_TRANSPORTS) for word in value.split())
        )
    else:
        device = f"tcp/{site.interface}"
        yield check("ucx", f"UCX sees {device}", lambda value: device in value.split())


def _each(hosts: Sequence[HostFacts], fact: str, what: str, holds: Callable[[str], bool]) -> SiteFinding:
    """Whether the value of ``fact`` (empty where a host has none) holds on every host, else which have another."""
    wrong = [one for one in hosts if not holds(one.get(fact, ""))]
    if not wrong:
        return SiteFinding(True, what)
    said = "; ".join(f"{one.get('host', '?')} has {one.get(fact) or 'nothing'}" for one in wrong)
    return SiteFinding(False, f"{what}: {said}")


def _words_in(value: str) -> list[str]:
    return [word for word in (part.strip() for part in value.split(",")) if word]


def _is_loaded(module: str, value: str) -> bool:
    return any(one == module or one.startswith(f"{module}/") for one in value.split(":"))


@dataclasses.dataclass(frozen=True)
class Resolved:
    """A path as written, and what it is on this machine: ``real`` is absolute and without symbolic links.

    ``real`` is empty where a variable in it isn't set.
    """

    written: str
    real: str

    def __str__(self) -> str:
        if not self.real:
            return f"{self.written} (a variable in it isn't set here)"
        return self.written if self.written == self.real else f"{self.written} (really {self.real})"


def lies_below(path: str, folder: str) -> bool:
    """Whether a resolved path is ``folder`` or lies below it."""
    parts, above = ([part for part in one.split("/") if part] for one in (path, folder))
    return parts[: len(above)] == above


def require_shared(what: str, path: Resolved, shared: Sequence[Resolved]) -> None:
    """Raise PlanRefusedError unless ``what`` lies below one of the file systems ``shared``, if any are listed."""
    if not shared or any(one.real and lies_below(path.real, one.real) for one in shared):
        return
    raise PlanRefusedError(
        f"{what} is {path}, which lies below none of paths.shared: {'; '.join(map(str, shared))}",
        then="the nodes wouldn't see it: put it there, or list its file system in paths.shared",
    )


MUST_AGREE = ("python", "dask", "distributed")
Versions = Mapping[str, Mapping[str, str]]
"""By process and package."""


def host_lines(workers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The cluster, and a line per host."""
    hosts = sorted({str(one["host"]) for one in workers})
    yield f"{_sum(workers)} on {counted(len(hosts), 'host')}"
    for host in hosts:
        yield f"  {host}: {_sum([one for one in workers if one['host'] == host])}"


def check_versions(versions: Versions) -> Iterator[SiteFinding]:
    """Versions that must agree, because messages can't be read otherwise; other differences are only reported."""
    names = {name for found in versions.values() for name in found}
    ordered = [*(name for name in MUST_AGREE if name in names), *sorted(names.difference(MUST_AGREE))]
    everywhere = f"in client, scheduler and {len(versions) - 2} workers"
    agree, differ = [], []
    for name in ordered:
        by_who = {who: found.get(name, "none") for who, found in versions.items()}
        count = Counter(by_who.values())
        if len(count) == 1:
            agree.append(f"{name} {next(iter(count))}")
            continue
        usual = count.most_common(1)[0][0]
        odd = [f"{who} {version}" for who, version in by_who.items() if version != usual]
        differ.append(SiteFinding(name not in MUST_AGREE, f"{name} {usual}, but {_some(odd)}"))
    if agree:
        yield SiteFinding(True, f"{', '.join(agree)} {everywhere}")
    yield from differ


def check_processes(processes: Sequence[Mapping[str, Any]], ucx: str | None) -> Iterator[SiteFinding]:
    """UCX as loaded in scheduler and workers, and their packages; ``ucx`` is the planned version, if any."""
    loaded = Counter(str(one["ucx"]["loaded"]) for one in processes)
    planned = ucx if ucx is not None else loaded.most_common(1)[0][0]
    odd = [
        f"{one['role']} {one['address']} {one['ucx']['loaded']}" for one in processes if one["ucx"]["loaded"] != planned
    ]
    if odd:
        yield SiteFinding(False, f"UCX {planned}, but {_some(odd)}")
    else:
        word = "no UCX is loaded" if planned == "none" else f"UCX {planned} is loaded"
        yield SiteFinding(True, f"{word} in scheduler and {len(processes) - 1} workers")
    packages = len({str(one["packages"]) for one in processes})
    if packages > 1:
        yield SiteFinding(True, f"{packages} different sets of packages, which may or may not matter")


def check_count(workers: int, planned: int | None) -> SiteFinding:
    """Whether there are as many workers as planned; None: no number was planned."""
    if planned is None:
        return SiteFinding(workers > 0, f"{workers} workers")
    return SiteFinding(workers >= planned, f"{workers} of {planned} workers")


def _some(words: Sequence[str]) -> str:
    return f"{', '.join(words[:4])}{' ...' if len(words) > 4 else ''}"


def _sum(workers: Sequence[Mapping[str, Any]]) -> str:
    threads = sum(int(one["threads"]) for one in workers)
    memory = sum(int(one["memory_limit"]) for one in workers)
    gpus = {(str(one["host"]), gpu_of(one)) for one in workers if one.get("gpus")}
    return f"{counted(len(workers), 'worker')}, {threads} threads, {format_bytes(memory)}, {len(gpus)} GPUs"
