"""Checks of a site's profile that don't need its machine. Pure."""

import re
from collections.abc import Iterator

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.launchers import LAUNCHERS
from gpubench.model.quantities import format_seconds
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.plan.adapter_combinations import check_combination
from gpubench.plan.check_result import CheckResult
from gpubench.plan.feasibility import check_counts, interface_fault
from gpubench.plan.placement import check_placement
from gpubench.plan.request import PROTOCOLS

_GROUPS = frozenset(
    ("all", "sm", "shm", "mm", "ib", *("rc", "rc_v", "rc_x", "ud", "ud_v", "ud_x", "dc", "dc_x"), "cuda", "rocm")
)
"""Words of UCX_TLS that stand for several transports, or for another name (UCX's FAQ): no run reports them."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_site(site: Site) -> list[CheckResult]:
    """All checks of a profile that don't need its machine."""
    fault = interface_fault(site.interface)
    exists = site.protocol in PROTOCOLS
    return [
        _adapters(site),
        CheckResult(exists, f"protocol {site.protocol}" + ("" if exists else f": there is {', '.join(PROTOCOLS)}")),
        CheckResult(not fault, fault or f"interface {site.interface} can be the name of a network device"),
        *_network(site),
        *_shape(site),
        *(_placement(site) if site.launcher in LAUNCHERS else []),
        *_time(site),
        *_batch(site),
        *_check_names(site),
        *_paths(site),
        *_scratch(site),
    ]


def _network(site: Site) -> Iterator[CheckResult]:
    """Whether UCX is told to use the interface that Dask uses; devices with a port (``mlx5_0:1``) have other names."""
    devices = [device.strip() for device in site.env.get("UCX_NET_DEVICES", "").split(",")]
    interfaces = [device for device in devices if device and ":" not in device and device != "all"]
    if interfaces and site.protocol == "ucx":
        same = not site.interface or site.interface in interfaces
        named = f"env.UCX_NET_DEVICES = {','.join(devices)}"
        differs = (
            f"{named} does not name interface {site.interface}: set both, unless UCX is meant to use another network"
        )
        yield CheckResult(True, named) if same else CheckResult(None, differs)


def _adapters(site: Site) -> CheckResult:
    try:
        check_combination(site)
    except (PlanRefusedError, UsageError) as error:
        return CheckResult(False, str(error))
    return CheckResult(True, f"{site.scheduler} + {site.launcher} + {site.runtime} go together")


def _shape(site: Site) -> Iterator[CheckResult]:
    workers, threads, node = site.layout.workers, site.layout.threads, site.node
    try:
        check_counts(site, site.defaults.nodes, [workers])
    except PlanRefusedError as error:
        yield CheckResult(False, str(error))
    busy = f"{counted(workers, 'worker')} x {counted(threads, 'thread')} = {workers * threads}"
    if node.cores:
        fits = workers * threads <= node.cores
        yield CheckResult(
            fits, f"{busy} {'fit into' if fits else 'are more than'} the {node.cores} cores of node.cores"
        )
    else:
        yield CheckResult(None, f"{busy} against cores: node.cores isn't set, a job gets what its scheduler gives")
    if site.device == "gpu" or (site.device == "auto" and node.gpus):
        yield CheckResult(
            workers == node.gpus,
            f"{counted(workers, 'worker')} and {counted(node.gpus, 'GPU')} per node, a worker takes one GPU",
        )
    elif site.device == "cpu" and node.gpus:
        yield CheckResult(False, f'node.gpus = {node.gpus} is asked for, but device = "cpu" uses none')
    elif site.device == "auto" and site.image.cuda:
        yield CheckResult(None, "image.cuda is set and node.gpus isn't: a job asks for no GPU, and may run on CPUs")
    memory = site.layout.memory
    if memory is not None and node.memory is not None:
        fits = memory <= node.memory
        yield CheckResult(fits, f"layout.memory {'fits into' if fits else 'is more than'} node.memory")


def _placement(site: Site) -> Iterator[CheckResult]:
    try:
        check_placement(site, site.device)
        lines = LAUNCHERS[site.launcher].check_steps(site, site.defaults.nodes[-1], site.layout.workers)
    except PlanRefusedError as error:
        yield CheckResult(False, str(error))
        return
    yield CheckResult(True, f"scheduler on {site.layout.scheduler}, client on {site.layout.client}")
    yield from (CheckResult(True, line) for line in lines)


def _time(site: Site) -> Iterator[CheckResult]:
    limit, warning = site.limits.job, site.batch.warning
    limits = f"batch.warning {format_seconds(warning)} and limits.job {format_seconds(limit)}"
    yield CheckResult(warning < limit, f"{limits}: the warning comes before the end")
    counts = site.defaults.nodes
    yield CheckResult(
        sorted(set(counts)) == counts, f"default node counts {', '.join(map(str, counts))}: ascending, each once"
    )


def _batch(site: Site) -> Iterator[CheckResult]:
    batch = site.batch
    if batch.needs_account and not batch.account:
        yield CheckResult(None, "batch.account is empty, and this site charges every job: --set batch.account=NAME")


def _check_names(site: Site) -> Iterator[CheckResult]:
    bad = [option for option in site.batch.options if not option.startswith("-") or option != option.strip()]
    if site.batch.options:
        yield CheckResult(not bad, f"batch.options: {', '.join(bad) + ' is no option' if bad else 'all are options'}")
    named = {"env": [*site.env], "env_allow": site.env_allow}
    wrong = [f"{key}: '{name}'" for key, names in named.items() for name in names if not _VARIABLE.fullmatch(name)]
    yield CheckResult(not wrong, f"names of variables{': ' + ', '.join(wrong) if wrong else ''}")
    named = {
        "expect_transport": site.expect_transport,
        "need_transport.same_node": site.need_transport.same_node,
        "need_transport.between_nodes": site.need_transport.between_nodes,
    }
    for key, names in named.items():
        groups = [name for name in names if name in _GROUPS]
        named_by_ucx = f"{', '.join(groups)} in UCX_TLS stands for several; name those that ucx_info -d lists"
        if names:
            yield CheckResult(not groups, f"{key}: {named_by_ucx if groups else 'names of single transports'}")
    mounts = [mount for mount in site.container.mounts if not 2 <= len(mount.split(":")) <= 3]
    if site.container.mounts:
        yield CheckResult(
            not mounts, f"container.mounts{': not HOST:INSIDE[:ro]: ' + ', '.join(mounts) if mounts else ''}"
        )


def _scratch(site: Site) -> Iterator[CheckResult]:
    """Workers spill to the scratch of their node; what all nodes share is slow, and shared."""
    scratch = site.paths.scratch
    if above := [path for path in site.paths.shared if scratch == path or scratch.startswith(f"{path.rstrip('/')}/")]:
        what = f"paths.scratch {scratch} lies below {above[0]} of paths.shared: workers spill to a shared file system"
        yield CheckResult(None, what)


def _paths(site: Site) -> Iterator[CheckResult]:
    relative = [path for path in site.paths.shared if not path.startswith(("/", "~", "$"))]
    if relative:
        yield CheckResult(False, f"paths.shared: {', '.join(relative)} is no absolute path")
    elif site.paths.shared:
        yield CheckResult(True, f"paths.shared: {', '.join(site.paths.shared)}")
    elif site.launcher in LAUNCHERS and LAUNCHERS[site.launcher].brings_files:
        reason = "no shared file system is needed: jobs bring their files along, and pods print their results"
        yield CheckResult(True, reason)
    elif not site.layout.one_machine:
        yield CheckResult(None, "paths.shared is empty: it is unknown whether nodes see a campaign")
