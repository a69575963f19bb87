"""What ``gpubench run`` may be told, by role; and a scheduler or workers that a person starts without a run spec."""

import argparse
from typing import Dict, List, Tuple

from gpubench.node.roles import no_dashboard

FLAGS = {
    "rank": "--rank",
    "skip": "--skip",
    "device": "--device",
    "protocol": "--protocol",
    "interface": "--interface",
    "scheduler_file": "--scheduler-file",
    "address": "--address",
    "name": "--name",
    "nthreads": "--nthreads",
    "memory_limit": "--memory-limit",
    "local_directory": "--local-directory",
    "death_timeout": "--death-timeout",
    "run_dir": "--run-dir",
    "parent": "--parent",
}

# (may be given, must be given). With a spec, what the spec says can't be said twice.
WITH_SPEC: Dict[str, Tuple[Tuple[str, ...], Tuple[str, ...]]] = {
    "auto": (("rank", "skip", "device", "protocol"), ()),
    "scheduler": (("device", "protocol", "parent", "scheduler_file"), ()),
    "worker": (("device", "protocol", "parent", "local_directory"), ("address", "name")),
    "client": (("device", "protocol", "parent"), ("address", "run_dir")),
}
_WORKER = ("device", "protocol", "address", "scheduler_file", "name")
_WORKER_LIMITS = ("nthreads", "memory_limit", "local_directory", "death_timeout")
BY_HAND: Dict[str, Tuple[Tuple[str, ...], Tuple[str, ...]]] = {
    "scheduler": (("protocol", "scheduler_file"), ("interface",)),
    "worker": ((*_WORKER, *_WORKER_LIMITS), ("interface",)),
}


class CombinationError(ValueError):
    """Options that don't go together; one line for the user."""


def check(options: argparse.Namespace) -> None:
    """Raise CombinationError unless the options fit the role, with or without ``--spec``."""
    role = f"role {options.role}"
    table = BY_HAND if options.spec is None else WITH_SPEC
    where = "without --spec" if options.spec is None else "with --spec"
    if options.role not in table:
        raise CombinationError(f"{role} needs --spec FILE; without one: --role {' or '.join(BY_HAND)}")
    may, must = table[options.role]
    given = [name for name in FLAGS if getattr(options, name) is not None]
    foreign = [FLAGS[name] for name in given if name not in (*may, *must)]
    if foreign:
        takes = ", ".join(FLAGS[name] for name in (*must, *may) if name != "parent")
        raise CombinationError(f"{role} {where} takes no {', '.join(foreign)} (it takes {takes})")
    missing = [FLAGS[name] for name in must if name not in given]
    if missing:
        raise CombinationError(f"{role} {where} needs {', '.join(missing)}")
    if table is BY_HAND and options.role == "worker" and (options.address is None) == (options.scheduler_file is None):
        raise CombinationError(f"{role} {where} needs --address or --scheduler-file, and not both")


def scheduler_arguments(options: argparse.Namespace) -> List[str]:
    """Words for ``dask scheduler``: the named interface only, port 0, no dashboard."""
    return [
        *_given(options, "protocol", "interface", "scheduler_file"),
        "--port",
        "0",
        *no_dashboard(options.interface),
        "--no-show",
    ]


def worker_arguments(options: argparse.Namespace) -> List[str]:
    """Words for ``dask worker`` and ``dask cuda worker``; what isn't given is Dask's own default."""
    address = [] if options.address is None else [options.address]
    return [
        *address,
        *_given(options, "protocol", "interface", "scheduler_file", "name", *_WORKER_LIMITS),
        *no_dashboard(options.interface),
    ]


def _given(options: argparse.Namespace, *names: str) -> List[str]:
    return [
        word
        for name in names
        if getattr(options, name) is not None
        for word in (FLAGS[name], str(getattr(options, name)))
    ]
