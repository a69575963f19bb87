"""Which options each role of ``gpubench run`` takes, with a run spec and without one."""

import argparse
from typing import Dict, Tuple

# (may be given, must be given). With a spec, what the spec says can't be said twice.
WITH_SPEC: Dict[str, Tuple[Tuple[str, ...], Tuple[str, ...]]] = {
    "auto": (("rank", "skip", "device", "protocol"), ()),
    "scheduler": (("device", "protocol", "parent", "registry", "scheduler_file"), ()),
    "worker": (("device", "protocol", "parent", "local_directory"), ("address", "name")),
    "client": (("device", "protocol", "parent", "turns"), ("address", "run_dir")),
    "forks": (("device", "parent"), ("members",)),
}
_WORKER = ("device", "protocol", "address", "scheduler_file", "name")
WORKER_LIMITS = ("nthreads", "memory_limit", "local_directory", "death_timeout")
BY_HAND: Dict[str, Tuple[Tuple[str, ...], Tuple[str, ...]]] = {
    "scheduler": (("protocol", "scheduler_file", "local_directory"), ("interface",)),
    "worker": ((*_WORKER, *WORKER_LIMITS), ("interface",)),
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
    foreign = [flag(name) for name in given if name not in (*may, *must)]
    if foreign:
        takes = ", ".join(flag(name) for name in (*must, *may) if name not in ("parent", "registry", "turns"))
        raise CombinationError(f"{role} {where} takes no {', '.join(foreign)} (it takes {takes})")
    missing = [flag(name) for name in must if name not in given]
    if missing:
        raise CombinationError(f"{role} {where} needs {', '.join(missing)}")
    if table is BY_HAND and options.role == "worker" and (options.address is None) == (options.scheduler_file is None):
        raise CombinationError(f"{role} {where} needs --address or --scheduler-file, and not both")


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")
