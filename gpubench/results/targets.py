"""Find the campaign, and decide whether a path names a campaign, an import, or a pack of one.

A path inside one of them names it, too. Commands that read take any of them; commands that change a campaign take its
directory, and ``Campaign.open`` refuses a pack. A pack is unpacked once per process, into a temporary directory that
is removed when the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.errors import UsageError
from gpubench.files import temporary_directory
from gpubench.store.campaign import PLAN_FILE, Campaign, newest_campaign
from gpubench.store.packs import SUFFIX, Pack, unpack

if TYPE_CHECKING:
    from gpubench.results.importers.directory import ImportedResults

_log = logging.getLogger(__name__)

IMPORT_FILE = "import.json"


def chosen_campaign(directory: Path | None, outputs: Path | None, *, with_results: bool = False) -> Campaign:
    """The named campaign to read, maybe packed, else the newest in ``outputs``, which is printed; raises UsageError."""
    if directory is None:
        return Campaign.open(newest(outputs, with_results=with_results))
    kept = opened(directory)
    if not isinstance(kept, Campaign):
        raise UsageError(
            f"{directory} is an import: this needs runs and links, which it doesn't have",
            then="name a campaign",
        )
    return kept


def campaign_to_change(directory: Path | None, outputs: Path | None) -> Campaign:
    """As ``chosen_campaign``, but a directory: a pack is never changed."""
    return Campaign.open(root_of(directory) if directory else newest(outputs))


def newest(outputs: Path | None, *, with_results: bool = False) -> Path:
    """The campaign that is used if none is named; its name goes to standard error; raises UsageError."""
    campaign = newest_campaign(outputs or Path("outputs"), with_results=with_results)
    _log.warning(f"campaign {campaign}, the newest{' with results' if with_results else ''}")
    return campaign


def root_of(path: Path) -> Path:
    """The campaign, import or pack that a path names or is inside of; else the path itself."""
    if is_kept(path) or not path.exists():
        return path
    above = () if ".." in path.parts else path.parents
    return next(filter(is_kept, (*above, *path.resolve().parents)), path)


def opened(path: Path) -> Campaign | ImportedResults:
    """The campaign, import or pack of a path, to read; raises UsageError, DataError."""
    path = root_of(path)
    if path.is_file():
        pack, directory = unpacked(path)
        if pack.index.what == "campaign":
            return dataclasses.replace(Campaign.open(directory), pack=pack)
    else:
        pack, directory = None, path
        if not (directory / IMPORT_FILE).is_file():
            return Campaign.open(directory)
    from gpubench.results.importers.directory import open_imported  # noqa: PLC0415 - polars; a status needs none of it

    return dataclasses.replace(open_imported(directory), pack=pack)


def all_opened(paths: Sequence[Path]) -> Iterator[Campaign | ImportedResults]:
    """Each path, or the campaigns, imports and packs in it; sorted as named, those inside by name."""
    seen: set[str] = set()
    for path in paths:
        inside = [] if is_kept(path) else sorted(filter(is_kept, path.glob("*")))
        if not inside and (path.is_file() or is_kept(root_of(path))):
            inside = [root_of(path)]
        if not inside:
            raise UsageError(f"{path} is no campaign and no import, and holds none", then="name some")
        for target in sorted(inside, key=lambda each: each.is_file()):  # what is packed besides is left out
            kept = opened(target)
            name = kept.plan.campaign if isinstance(kept, Campaign) else kept.name
            if kept.pack is not None and name in seen:
                _log.warning(f"{target} holds {name}, which is here already: left out")
                continue
            seen.add(name)
            yield kept


def is_kept(path: Path) -> bool:
    """Whether it is a campaign or an import, or has the name of a pack."""
    if path.name.endswith(SUFFIX) and path.is_file():
        return True
    return (path / IMPORT_FILE).is_file() or (path / PLAN_FILE).is_file()


def unpacked(path: Path) -> tuple[Pack, Path]:
    """What a pack says of itself, and a directory with its files; raises DataError for none or an edited one."""
    return _unpacked(path, path.stat().st_mtime_ns)


@functools.cache
def _unpacked(path: Path, _changed: int) -> tuple[Pack, Path]:
    until_exit = contextlib.ExitStack()
    atexit.register(until_exit.close)
    directory = until_exit.enter_context(temporary_directory("pack"))
    return Pack(path, unpack(path, directory)), directory
