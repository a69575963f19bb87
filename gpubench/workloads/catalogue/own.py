"""Workloads of users: a function or a class in a Python file of theirs, named ``FILE.py:NAME``.

The file travels inside ``node.pyz`` as a module of ``gpubench.workloads``, so that every process of a run, in any
container, can import it. Its hash is a parameter of the workload: another content is another cell.
"""

import hashlib
from typing import Any, Dict, Mapping

from gpubench.workloads.catalogue.entry import Workload

HASH = "sha256"
"""The parameter that holds the hash of the file's content."""


def is_own(name: str) -> bool:
    """Whether a workload's name means a file of a user; no name of the catalogue has a colon."""
    return ".py:" in name


def params_with_hash(source: bytes, params: Mapping[str, Any]) -> Dict[str, Any]:
    """The user's parameters, and the hash of the file with this content."""
    return {**params, HASH: hashlib.sha256(source).hexdigest()}


def shown(parameter: str, value: Any) -> str:
    """A parameter's value for people: of the hash its beginning."""
    return str(value)[:12] if parameter == HASH else str(value)


def module_name(params: Mapping[str, Any]) -> str:
    """Name of the user's module inside ``gpubench.workloads``."""
    return f"own_{params[HASH][:16]}"


def entry(name: str) -> Workload:
    """How such a workload is described: all that gpubench can know without running it."""
    return Workload(
        name=name,
        factory="own:OwnMeasurement",
        family="own",
        source="a file of yours",
        scaling="none",
        params={},
        timed="the call, and the results that it returns",
        counted="`nominal_bytes` of the function or class, else none",
        oracle="`check` of the class; without one answers are `unchecked`",
    )
