"""Schedulers and workers by hand, without a run spec: with the options of Dask's commands, including retired ones.

A script that calls dask-scheduler, dask-worker or dask-cuda-worker becomes ours by changing the command's name: what
Dask's command has today is handed on, what it had once is translated or left out with a line that says so. Sources: the
commands of distributed 2025.7.0 and later and of dask-cuda 24.12; distributed's changelog for what has gone.
"""

import argparse
import sys
from typing import Dict, List, Sequence, Tuple

from gpubench.node import dask_processes, gpu, role_options
from gpubench.node.role_options import WORKER_LIMITS, CombinationError, flag

Words = Dict[str, int]
"""By option: how many values it takes."""


def _table(values: str, switches: str = "") -> Words:
    return {**{f"--{name}": 1 for name in values.split()}, **{f"--{name}": 0 for name in switches.split()}}


_BOTH = _table(
    "host dashboard-address dashboard-prefix pid-file preload tls-ca-file tls-cert tls-key", "dashboard no-dashboard"
)
_SCHEDULER = {**_BOTH, **_table("port idle-timeout use-xheaders", "show no-show")}
_ANY_WORKER = {**_BOTH, **_table("resources worker-class")}
_CPU = _table(
    "nworkers worker-port nanny-port listen-address contact-address lifetime lifetime-stagger preload-nanny "
    "scheduler-sni",
    "nanny no-nanny lifetime-restart no-lifetime-restart",
)
_GPU = _table(
    "device-memory-limit rmm-pool-size rmm-maximum-pool-size rmm-release-threshold rmm-log-directory pre-import "
    "set-rmm-allocator-for-libs multiprocessing-method cudf-spill-stats",
    "rmm-managed-memory no-rmm-managed-memory rmm-async no-rmm-async rmm-track-allocations no-rmm-track-allocations "
    "enable-tcp-over-ucx disable-tcp-over-ucx enable-infiniband disable-infiniband enable-nvlink disable-nvlink "
    "enable-rdmacm disable-rdmacm enable-jit-unspill disable-jit-unspill enable-cudf-spill disable-cudf-spill "
    "shared-filesystem no-shared-filesystem",
)
TAKEN: Dict[str, Words] = {
    "scheduler": _SCHEDULER,
    "cpu": {**_ANY_WORKER, **_CPU},
    "gpu": {**_ANY_WORKER, **_GPU},
}
"""Options of Dask's commands besides our own, by command."""

ELSEWHERE: Dict[str, Tuple[Words, str]] = {
    "scheduler": ({}, ""),
    "cpu": (_GPU, "it is about GPUs, and this worker runs on the CPU"),
    "gpu": (_CPU, "GPU workers have one process per GPU, under a nanny"),
}
"""Options of the other kind of worker: they are left out, with the reason."""

RENAMED = {
    "--nprocs": "--nworkers",
    "--bokeh": "--dashboard",
    "--no-bokeh": "--no-dashboard",
    "--bokeh-prefix": "--dashboard-prefix",
    "--bokeh-port": "--dashboard-address",
    "--dashboard-port": "--dashboard-address",
}
GONE = _table("net-devices bokeh-whitelist memory-target-fraction", "reconnect no-reconnect bokeh-internal")
_COUNTS = ("--nprocs", "--bokeh-prefix", "--bokeh-port", "--dashboard-port")


def translate(kind: str, arguments: Sequence[str]) -> Tuple[List[str], List[str], List[str]]:
    """What to hand on, what is no option (an address), and a line about every word that isn't handed on as it is.

    Args:
        kind: ``scheduler``, or the worker's device.
        arguments: as the user wrote them, without our own options.

    Raises:
        CombinationError: an option of no Dask command, or one without its value.
    """
    taken, (elsewhere, why) = TAKEN[kind], ELSEWHERE[kind]
    handed: List[str] = []
    plain: List[str] = []
    lines: List[str] = []
    left = list(arguments)
    while left:
        word, equals, value = left.pop(0).partition("=")
        if not word.startswith("-"):
            plain.append(word + equals + value)
            continue
        new = RENAMED.get(word, word)
        counts = {**GONE, **elsewhere, **taken, **dict.fromkeys(RENAMED, 0), **dict.fromkeys(_COUNTS, 1)}.get(word)
        if counts is None:
            raise CombinationError(f"{word} is no option of Dask's {kind if kind == 'scheduler' else f'{kind} worker'}")
        if counts and not equals:
            if not left:
                raise CombinationError(f"{word} takes a value")
            value = left.pop(0)
        values = [value] if counts else []
        if new == "--dashboard-address" and new != word:
            values = [f":{value}"]
        if new in taken:
            handed += [new, *values]
            if new != word:
                lines.append(f"{word} is retired: {' '.join([new, *values])}")
        else:
            lines.append(f"{word} is left out: {why if new in elsewhere else 'Dask has it no more'}")
    return handed, plain, lines


def adopt(options: argparse.Namespace, arguments: Sequence[str], device: str) -> Tuple[List[str], List[str]]:
    """Dask's own ``arguments`` beside ours, and lines about those that aren't handed on as they are.

    An address among them becomes that of the worker.

    Raises:
        CombinationError: a word that Dask's command never had.
    """
    kind = options.role if options.role == "scheduler" else device
    handed, plain, lines = translate(kind, arguments)
    if options.role == "worker" and len(plain) == 1 and options.address is None:
        options.address = plain.pop()
    if plain:
        raise CombinationError(f"role {options.role} takes no {' '.join(plain)}")
    if options.role == "scheduler" and options.local_directory is not None:
        lines.append("--local-directory is left out: Dask's scheduler has it no more")
    return handed, lines


def scheduler_arguments(options: argparse.Namespace, more: Sequence[str] = ()) -> List[str]:
    """Words for ``dask scheduler``: unless ``more`` says otherwise the named interface only, port 0, no dashboard."""
    return [
        *_given(options, "protocol", "interface", "scheduler_file"),
        *([] if "--port" in more else ["--port", "0"]),
        *_dashboard(more),
        *([] if "--show" in more else ["--no-show"]),
        *more,
    ]


def worker_arguments(options: argparse.Namespace, more: Sequence[str] = ()) -> List[str]:
    """Words for ``dask worker`` and ``dask cuda worker``; what isn't given is Dask's own default."""
    address = [] if options.address is None else [options.address]
    return [
        *address,
        *_given(options, "protocol", "interface", "scheduler_file", "name", *WORKER_LIMITS),
        *_dashboard(more),
        *more,
    ]


def _dashboard(more: Sequence[str]) -> List[str]:
    return [] if {"--dashboard", "--dashboard-address"} & set(more) else list(dask_processes.NO_DASHBOARD)


def _given(options: argparse.Namespace, *names: str) -> List[str]:
    given = [(name, getattr(options, name)) for name in names]
    return [word for name, value in given if value is not None for word in (flag(name), str(value))]


def run(options: argparse.Namespace, arguments: Sequence[str]) -> None:
    """Become the scheduler or worker of these options, and of Dask's own ``arguments``."""
    device = gpu.resolve(options.device or "auto")
    more, lines = adopt(options, arguments, device)
    role_options.check(options)
    for line in lines:
        print(f"gpubench run: {line}", file=sys.stderr)  # noqa: T201
    if options.role == "scheduler":
        dask_processes.run_scheduler(scheduler_arguments(options, more))
    else:
        dask_processes.WORKERS[device]()(worker_arguments(options, more))
