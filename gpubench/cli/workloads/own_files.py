"""Find and read the files of users that hold workloads."""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path

from gpubench import resources
from gpubench.cli.say import say
from gpubench.errors import UsageError
from gpubench.files import write_many_atomically
from gpubench.model.base import check_name
from gpubench.model.own_workload import OwnWorkload, parse_own
from gpubench.model.suite import Suite
from gpubench.workloads.catalogue import CATALOGUE

ENTRY_POINTS = "gpubench.workloads"
"""Group of entry points by which an installed package offers workloads by name."""


def find_own(word: str, folder: Path = Path()) -> OwnWorkload | None:
    """The workload that ``FILE.py:NAME`` means, or an entry point's name; None: ``word`` is neither.

    Args:
        word: as typed.
        folder: that a relative path starts from.

    Raises:
        UsageError: the file can't be read, isn't Python, or has no such function or class.
    """
    if word in CATALOGUE:
        return None
    path, attribute = _parted(word)
    if not path:
        return None
    try:
        source = (folder / path).read_bytes()
    except OSError as error:
        raise UsageError(f"can't read {folder / path}: {error.strerror}", then="write FILE.py:NAME") from None
    return parse_own(Path(path).name, attribute, source, str(folder / path))


def own_workloads(suite: Suite, source: str) -> dict[str, OwnWorkload]:
    """Those of a suite, by what its entries call them; paths are relative to the folder of the suite's file.

    Raises:
        UsageError: as ``find_own``.
    """
    words = {entry.file or entry.name for entry in suite.workload}
    found = {word: find_own(word, Path(source).parent) for word in sorted(words)}
    return {word: one for word, one in found.items() if one is not None}


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


FILES = {".py": "workload.py", ".toml": "suite.toml"}
"""Templates below ``templates/new/``, by the suffix of the file that becomes of them."""


def new_suite(name: str, folder: Path) -> None:
    """Write ``NAME.py`` and ``NAME.toml``; raises UsageError where one of them exists."""
    try:
        check_name(name)
    except ValueError as error:
        raise UsageError(f"'{name}': {error}") from None
    paths = {suffix: folder / f"{name}{suffix}" for suffix in FILES}
    for path in paths.values():
        if path.exists():
            raise UsageError(f"{path} exists already, and is left as it is", then="take another name, or --out FOLDER")
    schema = resources.schema("suite").as_uri()
    texts = {
        paths[suffix]: (resources.root() / "templates" / "new" / file)
        .read_text(encoding="utf-8")
        .replace("@NAME@", name)
        .replace("@SCHEMA@", schema)
        for suffix, file in FILES.items()
    }
    write_many_atomically({path: text.encode() for path, text in texts.items()})
    say(f"{paths['.py']}: two workloads; {paths['.toml']}: a suite that lists them")
    say(f"measure one: gpubench measure {paths['.py']}:Join")
    say(f"compare two versions: gpubench bench --suite {paths['.toml']}")
