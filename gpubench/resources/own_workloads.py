"""Workloads by name: those of the catalogue, of suites, of users' files, and of installed packages."""

import importlib.util
from importlib import metadata
from pathlib import Path

from gpubench.errors import UsageError
from gpubench.model.base import TomlSource, nearest
from gpubench.model.own_workload import OwnWorkload, parse_own
from gpubench.model.suite import Suite
from gpubench.node.workloads.catalogue import CATALOGUE, Workload
from gpubench.resources.profiles import load_suite, suite_names

ENTRY_POINTS = "gpubench.workloads"
"""Group of entry points by which an installed package offers workloads by name."""


def find_own(word: str, folder: Path = Path()) -> OwnWorkload | None:
    """The workload that ``FILE.py:NAME`` means, or an entry point's name; None: ``word`` is neither.

    Args:
        folder: that a relative path starts from.

    Raises:
        UsageError: as ``parse_own``.
    """
    if word in CATALOGUE:
        return None
    path, attribute = _parted(word)
    if not path:
        return None
    file = folder / path
    return parse_own(file.name, attribute, lambda name: file.with_name(name).read_bytes(), str(file))


def own_workloads(suite: Suite, source: str) -> dict[str, OwnWorkload]:
    """Those of a suite, by what its entries call them; paths are relative to the folder of the suite's file.

    Raises:
        UsageError: as ``find_own``.
    """
    names = {entry.file or entry.name for entry in suite.workload}
    workloads = {name: find_own(name, Path(source).parent) for name in sorted(names)}
    return {name: workload for name, workload in workloads.items() if workload is not None}


def _parted(word: str) -> tuple[str, str]:
    """Path and name; an empty path where ``word`` names no file."""
    path, _, attribute = word.rpartition(":") if ".py:" in word else (word, "", "")
    if path.endswith(".py"):
        return path, attribute
    for point in metadata.entry_points(group=ENTRY_POINTS, name=word):
        try:
            module = importlib.util.find_spec(point.module)
        except (ImportError, ValueError):
            module = None
        if module is None or not (module.origin or "").endswith(".py"):
            raise UsageError(f"entry point {word} names module {point.module}, which is no Python file here")
        return str(module.origin), point.attr
    return "", ""


def workloads_named(name: str | None) -> list[Workload]:
    """One workload, those of a suite, or all, in the catalogue's order; raises UsageError."""
    if name is None:
        return list(CATALOGUE.values())
    if workload := workload_named(name):
        return [workload]
    if name not in suite_names() and not name.endswith(".toml"):
        names = [*suite_names(), *CATALOGUE]
        raise UsageError(f"no suite and no workload '{name}'{nearest(name, names)}")
    return workloads_of(*load_suite(name))


def workload_named(name: str) -> Workload | None:
    """A workload of the catalogue or of somebody's own; None where there is none of that name."""
    own = None if name in CATALOGUE else find_own(name)
    return own.described if own else CATALOGUE.get(name)


def workloads_of(suite: Suite, source: TomlSource) -> list[Workload]:
    """The workloads of a suite, in the catalogue's order, then its own; raises UsageError."""
    named = {entry.name for entry in suite.workload}
    own = {item.described.name: item.described for item in own_workloads(suite, source.name).values()}
    return [*(workload for workload in CATALOGUE.values() if workload.name in named), *own.values()]
