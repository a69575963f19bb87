"""``gpubench cluster``: a standing Dask cluster that people's own scripts join. Campaigns never use one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpubench.campaign import options as campaign_options
from gpubench.cli.options import DeclaredEnded, command_group, with_options
from gpubench.clusters.options import ClusterOptions, InspectOptions, MaybeTime, Name, Wait
from gpubench.errors import UsageError

if TYPE_CHECKING:
    from gpubench.store.clusters import Cluster


More = Annotated[str, typer.Argument(help="Number of nodes, like +2.", show_default=False)]
Fewer = Annotated[str, typer.Argument(help="Number of nodes, like -2.", show_default=False)]
SIGNED = {"ignore_unknown_options": True}


def register(app: typer.Typer) -> None:
    group = command_group(
        "A standing Dask cluster for your own scripts. Start, status, grow, shrink, stop, verify, affinity."
    )
    group.command()(with_options(start))
    group.command()(status)
    group.command(context_settings=SIGNED)(grow)
    group.command(context_settings=SIGNED)(shrink)
    group.command()(stop)
    for command in (verify, affinity):
        group.command()(with_options(command))
    app.add_typer(group, name="cluster")


def start(options: ClusterOptions) -> None:
    """Start a cluster of one variant, and say how scripts join it. On the site's scheduler; waits for its workers.

    It runs until its time is over (--time, default: the site's limit of a job) or until `cluster stop`.
    On Kubernetes it needs a ReadWriteMany claim (kubernetes.claim, else exit 6); scripts must reach pod addresses.
    """
    from gpubench.clusters.start import start_cluster

    start_cluster(options)


def status(name: Name = None, outputs: campaign_options.Outputs = None) -> None:
    """Its jobs, nodes, workers and times, and why processes died. Exit 4 if anything is missing."""
    from gpubench.clusters.status import show_status

    show_status(_cluster(name, outputs))


def grow(
    by: More, name: Name = None, limit: MaybeTime = None, wait: Wait = "10m", outputs: campaign_options.Outputs = None
) -> None:
    """Submit one more job of +N nodes, whose workers join the cluster."""
    from gpubench.clusters.resize import grow as more
    from gpubench.clusters.start import lifetime, seconds

    cluster = _cluster(name, outputs)
    limit_s = None if limit is None else lifetime(limit, cluster.record.site)
    more(cluster, _count(by, "+"), limit_s, time.monotonic() + seconds("--wait", wait))


def shrink(by: Fewer, name: Name = None, wait: Wait = "10m", outputs: campaign_options.Outputs = None) -> None:
    """Give back -N nodes by ending whole jobs. Their workers' data moves to the others first."""
    from gpubench.clusters.resize import shrink as fewer
    from gpubench.clusters.start import seconds

    fewer(_cluster(name, outputs), _count(by, "-"), time.monotonic() + seconds("--wait", wait))


def stop(name: Name = None, outputs: campaign_options.Outputs = None, ended: DeclaredEnded = None) -> None:
    """End all its jobs. Only its record and logs are left."""
    from gpubench.clusters.jobs import stop_cluster

    stop_cluster(_cluster(name, outputs), ended)


def verify(
    options: InspectOptions,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of workers that there must be; default: as planned, if gpubench started the cluster."
        ),
    ] = None,
) -> None:
    """Who is connected, and whether their versions agree. Hosts, workers, threads, memory, GPUs; Python, dask, UCX.

    Exit 4 if workers are missing or it has ended, 5 if its scheduler doesn't answer, 6 if something disagrees.
    """
    from gpubench.clusters.inspect import verify as inspect

    inspect(options, workers)


def affinity(
    options: InspectOptions,
    cpus: Annotated[
        int | None, typer.Option(min=1, help="CPUs that a worker must have; default: as many as its threads.")
    ] = None,
) -> None:
    """Whether each worker has the CPUs that its threads need. Also NUMA nodes and GPU; pass or FAIL.

    Finds several workers on one core, and two on one GPU. Exit 6 if a worker fails, 5 if the scheduler doesn't answer.
    """
    from gpubench.clusters.inspect import affinity as inspect

    inspect(options, cpus)


def _cluster(name: str | None, outputs: Path | None) -> Cluster:
    from gpubench.store.clusters import find_cluster

    return find_cluster(outputs or Path("outputs"), name)


def _count(text: str, sign: str) -> int:
    number = text.removeprefix(sign)
    if not number.isdigit() or int(number) == 0:
        raise UsageError(f"'{text}' is no number of nodes", then=f"write it like {sign}2")
    return int(number)
