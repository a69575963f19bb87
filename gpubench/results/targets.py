"""Find the campaign, and decide whether a path names a campaign or an import. A path inside one names it, too."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.errors import UsageError
from gpubench.model.text import counted
from gpubench.store.campaign import PLAN_FILE, SEARCH_FILE, Campaign, newest_campaign

if TYPE_CHECKING:
    from gpubench.results.importers.directory import ImportedResults

_log = logging.getLogger(__name__)

IMPORT_FILE = "import.json"


def chosen_campaign(directory: Path | None, outputs: Path | None, *, with_results: bool = False) -> Campaign:
    """The named campaign, of a search its last step, else the newest in ``outputs``, which is printed; UsageError."""
    if directory is None:
        return Campaign.open(newest(outputs, with_results=with_results))
    kept = opened(_last_step(directory) if (directory / SEARCH_FILE).is_file() else directory)
    if not isinstance(kept, Campaign):
        raise UsageError(f"{directory} is an import: this needs runs, which it doesn't have", then="name a campaign")
    return kept


def _last_step(search: Path) -> Path:
    steps = sorted(plan.parent for plan in search.glob(f"*/{PLAN_FILE}"))
    if not steps:
        raise UsageError(f"search {search} has measured nothing yet", then=f"go on: gpubench bisect {search}")
    _log.warning(f"search {search}: of its {counted(len(steps), 'step')} the last, {steps[-1].name}")
    return steps[-1]


def newest(outputs: Path | None, *, with_results: bool = False) -> Path:
    """The campaign that is used if none is named; its name goes to standard error; raises UsageError."""
    campaign = newest_campaign(outputs or Path("outputs"), with_results=with_results)
    _log.warning(f"campaign {campaign}, the newest{' with results' if with_results else ''}")
    return campaign


def root_of(path: Path) -> Path:
    """The campaign or import that a path names or is inside of; else the path itself."""
    if is_kept(path) or not path.exists():
        return path
    above = () if ".." in path.parts else path.parents
    return next(filter(is_kept, (*above, *path.resolve().parents)), path)


def opened(path: Path) -> Campaign | ImportedResults:
    """The campaign or import of a path; raises UsageError, DataError."""
    directory = root_of(path)
    if (directory / SEARCH_FILE).is_file():
        raise UsageError(f"{path} is a search, which has one answer: gpubench report {path}", then="name a step of it")
    if not (directory / IMPORT_FILE).is_file():
        return Campaign.open(directory)
    from gpubench.results.importers.directory import open_imported  # noqa: PLC0415 - polars; a status needs none of it

    return open_imported(directory)


def kept_in(path: Path, *, searches: bool = False) -> list[Path]:
    """The campaign or import that a path names or is inside of, else those in the directory, by name; UsageError.

    ``searches``: also the steps of the searches in that directory, which are campaigns.
    """
    root = root_of(path)
    steps = (step for search in path.glob(f"*/{SEARCH_FILE}") for step in search.parent.glob("*"))
    inside = [root] if is_kept(root) else sorted(filter(is_kept, [*path.glob("*"), *(steps if searches else ())]))
    if not inside:
        raise UsageError(f"{path} is no campaign and no import, and holds none", then="name some")
    return inside


def all_opened(paths: Sequence[Path]) -> Iterator[Campaign | ImportedResults]:
    """Each path, or the campaigns and imports in it; sorted as named, those inside by name."""
    return (opened(target) for path in paths for target in kept_in(path))


def is_kept(path: Path) -> bool:
    """Whether it is a campaign or an import."""
    return (path / IMPORT_FILE).is_file() or (path / PLAN_FILE).is_file()
