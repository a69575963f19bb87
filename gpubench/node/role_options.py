"""Which options each role of ``gpubench run`` takes, with a run spec and without one; Dask's words without one."""

import argparse
from typing import Dict, List, Sequence, Tuple

from gpubench.node.dask_processes import NO_DASHBOARD

# (may be given, must be given). With a spec, what the spec says can't be said twice.
WITH_SPEC: Dict[str, Tuple[Tuple[str, ...], Tuple[str, ...]]] = {
    "auto": (("rank", "skip", "device", "protocol"), ()),
    "scheduler": (("device", "protocol", "parent", "registry", "scheduler_file"), ()),
    "worker": (("device", "protocol", "parent", "local_directory"), ("address", "name")),
    "client": (("device", "protocol", "parent", "turns"), ("address", "run_dir")),
    "forks": (("device", "parent"), ("members",)),
}
_WORKER = ("device", "protocol", "address", "scheduler_file", "name")
_WORKER_LIMITS = ("nthreads", "memory_limit", "local_directory", "death_timeout")
BY_HAND: Dict[str, Tuple[Tuple[str, ...], Tuple[str, ...]]] = {
    "scheduler": (("protocol", "scheduler_file", "local_directory"), ("interface",)),
    "worker": ((*_WORKER, *_WORKER_LIMITS), ("interface",)),
}


class CombinationError(ValueError):
    """Options that don't go together; one line for the user."""


def check(options: argparse.Namespace) -> None:
    role = f"role {options.role}"
    table = BY_HAND if options.spec is None else WITH_SPEC
    where = "without --spec" if options.spec is None else "with --spec"
    if options.role not in table:
        raise CombinationError(f"{role} needs --spec FILE; without one: --role {' or '.join(BY_HAND)}")
    may, must = table[options.role]
    given = [
        name for name, value in vars(options).items() if value is not None and name not in ("command", "role", "spec")
    ]
    foreign = [_flag(name) for name in given if name not in (*may, *must)]
    if foreign:
        takes = ", ".join(_flag(name) for name in (*must, *may) if name not in ("parent", "registry", "turns"))
        raise CombinationError(f"{role} {where} takes no {', '.join(foreign)} (it takes {takes})")
    missing = [_flag(name) for name in must if name not in given]
    if missing:
        raise CombinationError(f"{role} {where} needs {', '.join(missing)}")
    if table is BY_HAND and options.role == "worker" and (options.address is None) == (options.scheduler_file is None):
        raise CombinationError(f"{role} {where} needs --address or --scheduler-file, and not both")


def adopt(options: argparse.Namespace, arguments: Sequence[str], device: str) -> Tuple[List[str], List[str]]:
    """Dask's own ``arguments`` beside ours, and lines about those that aren't handed on as they are.

    An address among them becomes that of the worker.

    Raises:
        CombinationError: a word that Dask's command never had.
    """
    if options.spec is not None or options.role not in BY_HAND:
        if arguments:
            raise CombinationError(f"role {options.role} takes no {' '.join(arguments)}")
        return [], []
    from gpubench.node import dask_cli_options

    kind = options.role if options.role == "scheduler" else device
    handed, plain, lines = dask_cli_options.translate(kind, arguments)
    if options.role == "worker" and len(plain) == 1 and options.address is None:
        options.address = plain.pop()
    if plain:
        raise CombinationError(f"role {options.role} takes no {' '.join(plain)}")
    if options.role == "scheduler" and options.local_directory is not None:
        lines.append("--local-directory is left out: Dask's scheduler has it no more")
    return handed, lines


def by_hand_scheduler_arguments(options: argparse.Namespace, more: Sequence[str] = ()) -> List[str]:
    """Words for ``dask scheduler``: unless ``more`` says otherwise the named interface only, port 0, no dashboard."""
    return [
        *_given(options, "protocol", "interface", "scheduler_file"),
        *([] if "--port" in more else ["--port", "0"]),
        *_dashboard(more),
        *([] if "--show" in more else ["--no-show"]),
        *more,
    ]


def by_hand_worker_arguments(options: argparse.Namespace, more: Sequence[str] = ()) -> List[str]:
    """Words for ``dask worker`` and ``dask cuda worker``; what isn't given is Dask's own default."""
    address = [] if options.address is None else [options.address]
    return [
        *address,
        *_given(options, "protocol", "interface", "scheduler_file", "name", *_WORKER_LIMITS),
        *_dashboard(more),
        *more,
    ]


def _dashboard(more: Sequence[str]) -> List[str]:
    return [] if {"--dashboard", "--dashboard-address"} & set(more) else list(NO_DASHBOARD)


def _given(options: argparse.Namespace, *names: str) -> List[str]:
    given = [(name, getattr(options, name)) for name in names]
    return [word for name, value in given if value is not None for word in (_flag(name), str(value))]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
