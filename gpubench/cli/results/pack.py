"""``gpubench results pack``: a campaign or an import as one file.

The pack may hold a copy without paths of people's homes, with new hashes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gpubench.cli.campaign.running import account_now, open_states
from gpubench.cli.results.open_target import newest, opened, root_of
from gpubench.cli.say import say, warn
from gpubench.errors import DataError, UsageError
from gpubench.files import reading, temporary_directory, writing
from gpubench.fsck import ids_of_runs, ids_of_workloads
from gpubench.importers.directory import NOTE, TABLE
from gpubench.model.plan import Plan, PlanAddition
from gpubench.model.quantities import format_bytes
from gpubench.spec.plain import content_id, parse_json
from gpubench.spec.records import DATA_FOLDER, RUN_FILE
from gpubench.store.campaign import DERIVED, PLAN_FILE, Campaign
from gpubench.store.packs import HOMES_REPLACED, INDEX, SUFFIX, Index, is_plain, read_index, write_pack
from gpubench.store.rundirs import Records, is_temporary

HOME = re.compile(
    r"/(?P<root>home|Users)/(?!(?:user|runner|Shared)(?![\w.-]*\w))(?:[^/\s\"':;,)\\]|\\u[0-9a-fA-F]{4})+"
)
"""A home that names a person; ``/root``, a placeholder, and the homes of CI machines don't.

The name ends at a backslash, unless the backslash escapes a letter of the name: in JSON it belongs to what follows.
"""
PLACEHOLDER = r"/\g<root>/user"
_Edit = Callable[[bytes], bytes]


def copy_without_homes(files: Mapping[str, Path], into: Path) -> dict[str, Path]:
    """Write the files below ``into`` with ``/home/user`` for every home, in archives of logs too.

    A manifest is named by the hash of its content, the ids of workloads and runs are hashes of their parameters and
    labels, and a run's record holds the hashes of the run's other files: all are computed again, so the copy is as
    consistent as the original. The node half (``node.pyz``) is left as it is.

    Args:
        files: of a campaign, by their names below its directory.
        into: an empty directory.

    Returns:
        The copies by the same names; those of manifests and runs may differ.
    """
    content: dict[str, bytes] = {}
    for name, path in files.items():
        with reading(path):
            content[name] = path.read_bytes()
    plain = {name: _edited(name, data, _replace_homes) for name, data in content.items()}
    ids = {
        Path(name).stem: content_id(_parsed(name, plain[name]), len(Path(name).stem))
        for name in content
        if name.startswith("manifests/") and name.endswith(".json") and plain[name] != content[name]
    }
    ids |= _ids_in_plan(content, plain)
    names = {name: _replaced(name.encode(), ids).decode() for name in content}
    plain = {name: _edited(name, data, lambda one: _replaced(one, ids)) for name, data in plain.items()}
    for record in [name for name in plain if name.endswith(f"/{RUN_FILE}")]:
        beside = [name for name in content if name.startswith(record.removesuffix(RUN_FILE)) and name != record]
        plain[record] = _replaced(plain[record], {_sha256(content[name]): _sha256(plain[name]) for name in beside})
    plain = {names[name]: data for name, data in plain.items()}
    copies = {name: into / name for name in plain}
    for name, path in copies.items():
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(plain[name])
    return copies


def _ids_in_plan(content: Mapping[str, bytes], plain: Mapping[str, bytes]) -> dict[str, str]:
    """New ids by old ones, of workloads and runs; one that was no hash before stays, for fsck to find."""
    plans = [name for name in plain if name == PLAN_FILE or name.startswith("plan.d/")]
    if all(plain[name] == content[name] for name in plans):
        return {}
    before, after = (Plan.parse(one[PLAN_FILE], PLAN_FILE) for one in (content, plain))
    ids = _changed(ids_of_workloads(before.workloads), ids_of_workloads(after.workloads))
    for name in plans:
        parse = Plan.parse if name == PLAN_FILE else PlanAddition.parse
        old, new = (parse(data, name).jobs for data in (content[name], _replaced(plain[name], ids)))
        ids |= _changed(ids_of_runs(before.campaign, old), ids_of_runs(after.campaign, new))
    return ids


def _changed(before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The new hash by the old one, where ids (id and hash of each) were hashes and are none any more."""
    return {one: new for (one, hashed), (_, new) in zip(before, after, strict=True) if one == hashed != new}


def _parsed(name: str, data: bytes) -> Any:
    try:
        return parse_json(data)
    except ValueError:
        raise DataError(
            f"{name} is cut off or not JSON", then="gpubench results fsck says what else is wrong"
        ) from None


def _edited(name: str, data: bytes, edit: _Edit) -> bytes:
    if name.endswith(".pyz"):
        return data
    try:
        return _archive(data, edit) if name.endswith(".zip") else edit(data)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
        raise DataError(f"{name} can't be read: {error}", then="gpubench results fsck says what is wrong") from None


def _archive(data: bytes, edit: _Edit) -> bytes:
    """The archive with every member edited; the same bytes where that changes none."""
    out = io.BytesIO()
    changed = False
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        for info in source.infolist():
            member = source.read(info)
            changed |= edit(member) != member
            target.writestr(info, edit(member))
    return out.getvalue() if changed else data


def _replace_homes(data: bytes) -> bytes:
    return HOME.sub(PLACEHOLDER, data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _replaced(data: bytes, words: Mapping[str, str]) -> bytes:
    for old, new in words.items():
        data = data.replace(old.encode(), new.encode())
    return data


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


_LEFT_OUT = {*DERIVED, ".fetch", ".rsync-partial", DATA_FOLDER, INDEX}
_MOST_LINES = 8
_ENDED = ("ok", "failed", "skipped")


def pack(directory: Path | None, out: Path | None, *, homes: bool = True) -> None:
    """Write the pack and print its content. Without ``homes``: a pack of a copy without paths of homes.

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
        index = Index("import", kept.name, {})
        files = {name: directory / name for name in (NOTE, TABLE)}
    with temporary_directory("packing") as folder:
        packed = files if homes else copy_without_homes(files, folder)
        written = write_pack(target, dataclasses.replace(index, homes_replaced=not homes), packed)
    for line in index.missing[:_MOST_LINES]:
        warn(f"not in it: {line}")
    if len(index.missing) > _MOST_LINES:
        warn(f"not in it: {len(index.missing) - _MOST_LINES} more runs; {INDEX} in the pack names them all")
    size = format_bytes(target.stat().st_size)
    if not homes:
        say(f"{target}: {HOMES_REPLACED}")
    say(f"{target}: {index.what} {index.name}, {len(written.files)} files, {size}; derived files are left out")


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
    missing = [one for one in accounting.outcomes if one.status not in _ENDED]
    return Index(
        "campaign",
        campaign.plan.campaign,
        {},
        missing=[f"block {one.block.block} {one.run.variant} ({one.run.run}): {one.reason}" for one in missing],
        open_jobs=sorted(job for job, state in states.items() if state.phase != "ended"),
        ends={job: state.end or state.reason for job, state in sorted(states.items())},
    )


def _files(directory: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(directory):
        here = Path(folder)
        top = here == directory
        folders[:] = sorted(name for name in folders if not (top and name in _LEFT_OUT) and not is_temporary(name))
        for name in [*names, *(one for one in folders if (here / one).is_symlink())]:
            path = here / name
            if (top and name in _LEFT_OUT) or is_temporary(name):
                continue
            if path.is_symlink() or not path.is_file():
                raise DataError(f"{path} is a link, or no plain file", then="put the file itself there, or remove it")
            inside = path.relative_to(directory).as_posix()
            if not is_plain(inside):
                raise DataError(f"{path!r} can't be packed under that name", then="rename it, or remove it")
            yield inside, path
