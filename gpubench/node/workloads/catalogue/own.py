"""Workloads of users: a function or a class in a Python file of theirs, named ``FILE.py:NAME``.

The file, and those of its folder that it imports, travel inside ``node.pyz`` as a package of
``gpubench.node.workloads``, so that every process of a run, in any container, can import them. The hash of their
content is a parameter of the workload: another content is another cell. A version that the file states stands for the
hash.
"""

import hashlib
import re
from typing import Any, Dict, Mapping

HASH = "sha256"
"""The parameter that holds the hash of the content."""
VERSION = "version"
"""The parameter in its place, where the file states one."""
PACKAGE = re.compile(r"/own_[0-9a-f]{16}/([^/]+\.py)$")
"""The end of a path to a user's file inside ``node.pyz``."""


def is_own(name: str) -> bool:
    """Whether a workload's name means a file of a user; no name of the catalogue has a colon."""
    return ".py:" in name


def given(params: Mapping[str, Any]) -> Dict[str, Any]:
    """The parameters that the user's code gets: without the hash or the version in its place."""
    return {key: value for key, value in params.items() if key != (HASH if HASH in params else VERSION)}


def shown(parameter: str, value: Any) -> str:
    """A parameter's value for people: of the hash its beginning."""
    return str(value)[:12] if parameter == HASH else str(value)


def package_name(name: str, params: Mapping[str, Any]) -> str:
    """Name of the user's package inside ``gpubench.node.workloads``: 16 digits of the hash, or of file and version."""
    stated = "{} {}".format(name.rpartition(":")[0], params.get(VERSION))
    return f"own_{(params.get(HASH) or hashlib.sha256(stated.encode('utf-8')).hexdigest())[:16]}"


def module_name(name: str, params: Mapping[str, Any]) -> str:
    """Full name of the module that the user's file is."""
    return "gpubench.node.workloads.{}.{}".format(package_name(name, params), name.rpartition(":")[0][: -len(".py")])
