"""Pack a campaign or an import into one file."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from gpubench.errors import DataError, UsageError
from gpubench.model.quantities import format_bytes
from gpubench.node.spec.records import DATA_FOLDER
from gpubench.results.importers.directory import NOTE, TABLE
from gpubench.results.targets import newest, opened, root_of
from gpubench.store.campaign import DERIVED, Campaign
from gpubench.store.packs import INDEX, SUFFIX, Index, is_plain, read_index, write_pack
from gpubench.store.rundirs import Records, is_temporary
from gpubench.store.states import account_now, open_states

_log = logging.getLogger(__name__)

_LEFT_OUT = {*DERIVED, DATA_FOLDER, INDEX}
_MOST_LINES = 8
_ENDED = ("ok", "failed", "skipped")


def pack(directory: Path | None, out: Path | None) -> None:
    """Write the pack and print its content.

    Raises:
        UsageError: no campaign and no import, a job of it runs, ``out`` is something else already or lies inside.
        DataError: a link, or a file that is none, in a campaign.
    """
    directory = newest(None, with_results=True) if directory is None else root_of(directory)
    if directory.is_file():
        raise UsageError(f"{directory} is a file", then="name the directory of a campaign or of an import")
    target = out or Path(f"{directory.resolve().name}{SUFFIX}")
    kept = opened(directory)
    _refuse_to_harm(directory, target, kept.plan.campaign if isinstance(kept, Campaign) else kept.name)
    if isinstance(kept, Campaign):
        index, files = _index(kept), dict(_files(directory))
    else:
        index = Index("import", kept.name)
        files = {name: directory / name for name in (NOTE, TABLE)}
    write_pack(target, index, files)
    for line in index.missing[:_MOST_LINES]:
        _log.warning(f"not in it: {line}")
    if len(index.missing) > _MOST_LINES:
        _log.warning(f"not in it: {len(index.missing) - _MOST_LINES} more runs; {INDEX} in the pack names them all")
    size = format_bytes(target.stat().st_size)
    _log.info(f"{target}: {index.what} {index.name}, {len(files)} files, {size}; derived files are left out")


def _refuse_to_harm(directory: Path, target: Path, name: str) -> None:
    if target.resolve().is_relative_to(directory.resolve()):
        raise UsageError(f"{target} is inside the directory to be packed", then="name a file elsewhere with --out")
    if target.is_dir():
        raise UsageError(f"{target} is a directory", then="name a file with --out")
    if target.exists():
        try:
            other = read_index(target).name
        except DataError:
            raise UsageError(f"{target} exists already and is no pack", then="name another file with --out") from None
        if other != name:
            raise UsageError(f"{target} is the pack of {other}, not of {name}", then="name another file with --out")


def _index(campaign: Campaign) -> Index:
    """The pack's lines about missing runs; raises UsageError while one of them may still come."""
    records = Records()
    accounting = account_now(campaign, records)
    states = open_states(campaign, records)
    alive = sorted(job for job, state in states.items() if state.alive)
    if alive:
        raise UsageError(
            f"{campaign.directory}: job {', '.join(alive)} is still running",
            then=f"pack it when it has ended; to see its state: gpubench status {campaign.directory}",
        )
    missing = [result for result in accounting.outcomes if result.status not in _ENDED]
    return Index(
        "campaign",
        campaign.plan.campaign,
        missing=[
            f"block {result.block.block} {result.run.variant} ({result.run.run}): {result.reason}" for result in missing
        ],
        open_jobs=sorted(job for job, state in states.items() if state.phase != "ended"),
        ends={job: state.end or state.reason for job, state in sorted(states.items())},
    )


def _files(directory: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(directory):
        here = Path(folder)
        top = here == directory
        folders[:] = sorted(name for name in folders if not (top and name in _LEFT_OUT) and not is_temporary(name))
        for name in [*names, *(folder for folder in folders if (here / folder).is_symlink())]:
            path = here / name
            if (top and name in _LEFT_OUT) or is_temporary(name):
                continue
            if path.is_symlink() or not path.is_file():
                raise DataError(f"{path} is a link, or no plain file", then="put the file itself there, or remove it")
            inside = path.relative_to(directory).as_posix()
            if not is_plain(inside):
                raise DataError(f"{path!r} can't be packed under that name", then="rename it, or remove it")
            yield inside, path
