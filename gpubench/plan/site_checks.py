"""What a profile says against itself: keys are known by then, here it is about what they mean together. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from gpubench.errors import PlanRefusedError
from gpubench.model.quantities import format_seconds
from gpubench.model.site import Site
from gpubench.plan.adapter_combinations import BRINGS_FILES, check_combination
from gpubench.plan.feasibility import check_counts, interface_fault
from gpubench.plan.make import PROTOCOLS
from gpubench.plan.placement import check_placement, check_steps_of

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclasses.dataclass(frozen=True)
class SiteFinding:
    """One thing that was looked at. ``ok`` is None where it couldn't be checked."""

    ok: bool | None
    what: str

    def __str__(self) -> str:
        return f"{ {True: 'ok', False: 'wrong', None: 'not checked'}[self.ok] }: {self.what}"


def check_site(site: Site) -> list[SiteFinding]:
    """Everything that can be said of a profile without its machine."""
    return [
        _triple(site),
        _protocol(site),
        _interface(site),
        *_shape(site),
        *_placement(site),
        *_time(site),
        *_words(site),
        *_paths(site),
    ]


def _triple(site: Site) -> SiteFinding:
    try:
        check_combination(site)
    except PlanRefusedError as error:
        return SiteFinding(False, str(error))
    return SiteFinding(True, f"{site.scheduler} + {site.launcher} + {site.runtime} go together")


def _protocol(site: Site) -> SiteFinding:
    known = site.protocol in PROTOCOLS
    return SiteFinding(known, f"protocol {site.protocol}" + ("" if known else f": there is {', '.join(PROTOCOLS)}"))


def _interface(site: Site) -> SiteFinding:
    fault = interface_fault(site.interface)
    return SiteFinding(not fault, fault or f"interface {site.interface} can be the name of a network device")


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
    mounts = [mount for mount in site.container.mounts if not 2 <= len(mount.split(":")) <= 3]
    if site.container.mounts:
        yield SiteFinding(
            not mounts, f"container.mounts{': not HOST:INSIDE[:ro]: ' + ', '.join(mounts) if mounts else ''}"
        )


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
        yield SiteFinding(None, "paths.shared is empty: nobody can tell whether nodes see a campaign")
