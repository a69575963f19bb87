"""From the user's options to a cluster that scripts can join."""

import datetime as dt
import logging
import os
import secrets
import time
from pathlib import Path

from gpubench import __version__, resources
from gpubench.campaign.option_values import chosen_settings, parsed, quantity
from gpubench.campaign.own_machine import cores_and_memory
from gpubench.campaign.preflight import image_place, require_account, resolve, shared_paths
from gpubench.clusters.jobs import job_state, submit_job, sweep, wait_for
from gpubench.clusters.keys import make_keys
from gpubench.clusters.options import ClusterOptions
from gpubench.clusters.status import time_lines
from gpubench.errors import IncompleteError, PlanRefusedError, UsageError
from gpubench.files import write_atomically
from gpubench.images.compatibility import with_waiting
from gpubench.images.obtain import make_ready, obtain_images
from gpubench.images.variables import check_variables
from gpubench.launchers import LAUNCHERS
from gpubench.model.base import check_name
from gpubench.model.cluster import PROTOCOLS, ClusterRecord
from gpubench.model.image import Image
from gpubench.model.plan import PlannedVariant
from gpubench.model.quantities import format_seconds, parse_seconds
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.model.variant import Variant
from gpubench.node.spec.cluster import READY, SCHEDULER_FILE, TOKEN_FILE
from gpubench.node.spec.plain import content_id
from gpubench.plan.adapter_combinations import check_combination
from gpubench.plan.feasibility import check_bounds
from gpubench.plan.known_issues import apply_issues, issue_lines
from gpubench.plan.placement import check_placement
from gpubench.plan.shared_paths import require_shared
from gpubench.plan.transports import check_gpu_transports
from gpubench.plan.worker_memory import check_worker_memory
from gpubench.render.cluster import (
    CLIENT_FILE,
    check_shared,
    claimed,
    client_lines,
    client_python,
    client_script,
    in_pods,
)
from gpubench.render.node_half import NODE_HALF, pack
from gpubench.render.shell import command_line
from gpubench.resources.profiles import default_variant, known_issues, load_site, outputs_of, to_type
from gpubench.schedulers import BATCH, LOCAL
from gpubench.store.clusters import CLUSTERS, Cluster

_log = logging.getLogger(__name__)


def start_cluster(options: ClusterOptions) -> None:
    """Start it, wait until every worker is there, and say how to join.

    Raises:
        UsageError: a word that can't be read, a name that is taken.
        PlanRefusedError: the site can't hold a standing cluster, or the variant has no image.
        IncompleteError: it isn't ready within ``wait``, or ended.
    """
    site = load_site(options.site, chosen_settings(options.as_campaign_options))
    check_combination(site)
    check_bounds(site, [options.nodes], [site.layout.workers])
    check_placement(site, site.device)
    LAUNCHERS[site.launcher].check_steps(site, options.nodes, site.layout.workers)
    check_shared(site)
    require_account(site)
    deadline = time.monotonic() + seconds("--wait", options.wait)
    record = _record(options, site)
    cluster = _write(record)
    job = cluster.add_job(options.nodes, record.limit_s)
    try:
        submit_job(cluster, job, deadline)
    except BaseException:
        if job_state(cluster, job).phase == "unsubmitted":
            cluster.forget()
        raise
    try:
        ready = wait_for(cluster, job, deadline, lambda state: state.phase == READY)
    except IncompleteError:
        if job_state(cluster, job).phase == "ended":
            sweep(cluster)
        raise
    for line in [*time_lines(ready, job.job), *join_lines(record)]:
        _log.info(line)


def join_lines(record: ClusterRecord) -> list[str]:
    folder = record.directory
    python = client_python(record)
    lines = [f"scheduler file: {folder}/{SCHEDULER_FILE}", "in a script:"]
    lines += [f"    {line}" for line in client_lines(record)]
    how = python or "a Python with the versions of the cluster's image"
    lines.append(f"under {how}, after: . {folder}/{CLIENT_FILE}")
    if record.protocol != "tls":
        where = "any interface of its nodes" if record.protocol == "ucx" else record.site.interface
        lines.append(
            f"every process that reaches it over {where} can run code as you; with --protocol tls, only clients that "
            "have its keys can connect"
        )
    settings = record.site.kubernetes
    if in_pods(record.site):
        part = f" (subPath {settings.claim_folder})" if settings.claim_folder else ""
        lines.append(
            f"the scheduler listens on its pod's address: run scripts where this is reachable, or in a pod of user "
            f"{settings.run_as_user} with the claim {settings.claim}{part} mounted on {claimed(record)}"
        )
    return lines


def seconds(option: str, text: str) -> float:
    """A time as typed; raises UsageError."""
    return quantity(option, text, parse_seconds)


def lifetime(text: str, site: Site) -> float:
    """A job's time limit as typed; raises UsageError for one that is too short to start and stop."""
    limit_s, least = seconds("--time", text), site.limits.start + site.limits.stop
    if limit_s <= least:
        raise UsageError(
            f"--time {text} is too short: starting and stopping may take {format_seconds(least)}",
            then="a longer --time, or --set limits.start=...",
        )
    return limit_s


def _record(options: ClusterOptions, site: Site) -> ClusterRecord:
    protocol = options.protocol or site.protocol
    if protocol not in PROTOCOLS:
        raise UsageError(f"no protocol '{protocol}'", then=f"there is: {', '.join(PROTOCOLS)}")
    variant = default_variant(site, options.ucx)
    if not options.allow_unknown_env:
        check_variables(site, [variant])
    check_gpu_transports(site.device, protocol, {**site.env, **variant.env}, f"variant {variant.label}")
    now = dt.datetime.now(dt.UTC)
    name = options.name or f"{site.name}-{now:%Y%m%dT%H%M%SZ}"
    try:
        check_name(name)
    except ValueError as error:
        raise UsageError(f"--name '{name}': {error}") from None
    limit_s = site.limits.job if options.time is None else lifetime(options.time, site)
    outputs = outputs_of(site, options.outputs)
    directory = (outputs / CLUSTERS).resolve() / name
    if in_pods(site):
        check_claimed(site, outputs.resolve(), os.getuid())
    image, site = _image(options, site, variant, directory)
    planned = PlannedVariant(**dict(variant), image=image)
    return ClusterRecord(
        name=name,
        identity=content_id({"directory": str(directory), "salt": secrets.token_hex(8)}),
        directory=str(directory),
        created_at=now.isoformat(),
        gpubench=__version__,
        site=site,
        variant=variant,
        image=image,
        protocol=protocol,
        memory_limit=_memory_limit(site, options.nodes),
        limit_s=limit_s,
        workarounds=_workarounds(site, protocol, planned, options.nodes, now),
    )


def check_claimed(site: Site, outputs: Path, user: int) -> None:
    """See that pods can use what ``user`` writes below ``outputs``, which is the claim's folder.

    Raises:
        PlanRefusedError: they run as another user, or a pod can't have that path.
    """
    pods = site.kubernetes.run_as_user
    if pods != user:
        raise PlanRefusedError(
            f"pods run as user {pods} (kubernetes.run_as_user), and only user {user} may enter the cluster's directory",
            then=f"--set kubernetes.run_as_user={user}",
        )
    if ":" in str(outputs):
        raise PlanRefusedError(f"no claim can be mounted on {outputs}: Kubernetes takes no ':' there")


def _workarounds(site: Site, protocol: str, variant: PlannedVariant, nodes: int, now: dt.datetime) -> dict[str, str]:
    """Variables that known issues set; raises PlanRefusedError if one of them rules the cluster out."""
    applied, notes = apply_issues(
        known_issues(site), site=site, protocol=protocol, variants=[variant], nodes=[nodes], today=f"{now:%Y-%m-%d}"
    )
    for issue in applied:
        if issue.action == "skip":
            raise PlanRefusedError(f"a known issue of {variant.ucx}: {issue.why}", then="another --ucx or --protocol")
    for line in [*issue_lines(applied), *notes]:
        _log.info(line)
    return {name: value for issue in applied for name, value in issue.env.items()}


def _image(options: ClusterOptions, site: Site, variant: Variant, directory: Path) -> tuple[Image, Site]:
    """The variant's image, ready where this machine is the site, and seen by every node where jobs wait in a queue.

    With the profile that its processes run under: how they can wait depends on the image.
    """
    date = parsed("date", options.date)
    image_and_manifest = obtain_images(site, [variant.ucx], date=date, base=options.base)[variant.ucx]
    if image_and_manifest is None:
        raise PlanRefusedError(
            f"no image yet for {variant.ucx}",
            then="build it: "
            + command_line(["gpubench", "images", "build", *to_type(site.name), "--ucx", variant.ucx]),
        )
    image, manifest = image_and_manifest
    if site.scheduler in LOCAL:
        make_ready(image)
    if site.scheduler in BATCH:
        shared = shared_paths(site)
        require_shared("the cluster's directory", resolve(str(directory)), shared)
        place = image_place(image)
        if place is not None:
            require_shared(f"the image of {variant.ucx}", place, shared)
    return image, with_waiting(site, options.protocol or site.protocol, {variant.ucx: manifest})


def _memory_limit(site: Site, nodes: int) -> int:
    """Bytes per worker; 0: half of the node's over its workers, worked out on the node."""
    layout = site.layout
    memory = layout.memory
    if memory is None:
        _, of_node = cores_and_memory(site)
        if not of_node:
            return 0
        memory = of_node // 2 // (nodes if layout.one_machine else 1)
    check_worker_memory(memory // layout.workers, layout.workers)
    return memory // layout.workers


def _write(record: ClusterRecord) -> Cluster:
    cluster = Cluster.begin(record)
    directory = cluster.directory
    write_atomically(directory / TOKEN_FILE, secrets.token_hex(16), mode=0o600)
    if record.protocol == "tls":
        make_keys(directory, record.name)
    write_atomically(directory / NODE_HALF, pack(resources.node_half()))
    write_atomically(directory / CLIENT_FILE, client_script(record))
    _log.info(f"cluster {record.name}: {_summary(record)} in {directory}")
    return cluster


def _summary(record: ClusterRecord) -> str:
    layout = record.site.layout
    workers = f"{counted(layout.workers, 'worker')} x {counted(layout.threads, 'thread')} a node"
    return (
        f"site {record.site.name}, UCX {record.image.ucx_version}, {record.protocol}, {workers}, "
        f"for {format_seconds(record.limit_s)}"
    )
