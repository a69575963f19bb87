"""A repository of packs of several people and sites: ``results publish`` adds one, ``results validate`` checks all.

The repository holds ``contributions/<site>/<campaign>.gpubench.zip`` and ``contributions/index.json``, which names each
with its hash.
"""

from __future__ import annotations

import json
import logging
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpubench.errors import DataError, UsageError
from gpubench.files import create_exclusively, locked, reading, write_atomically
from gpubench.model.quantities import format_bytes
from gpubench.model.secrets import holds_secret, secrets
from gpubench.model.text import counted, shortened
from gpubench.node.spec.plain import parse_json
from gpubench.results.fsck import check, sha256
from gpubench.results.targets import opened
from gpubench.store.campaign import Campaign
from gpubench.store.packs import SUFFIX, too_much, unknown_files
from gpubench.store.rundirs import read_provenance
from gpubench.store.states import account_now

_log = logging.getLogger(__name__)

SCHEMA = "gpubench/contributions/1"
FOLDER, INDEX = "contributions", "index.json"
MOST_BYTES = 64 * 2**20
"""Maximum size of one pack: repositories keep every version permanently."""
PROVEN = ("processes", "nodes")
"""Parts of a run's provenance that are needed to know what ran where."""
HOME = re.compile(r"/(?:home|Users)/(?!(?:user|runner|Shared)(?![\w.-]*\w))[^/\s\"':;,)\\]")
"""A home that names a person; ``/root``, a placeholder, and the homes of CI machines don't."""
_EXPANDED = re.compile(r"\b[A-Z_][A-Z0-9_]*=[\"']?\$\S*")
"""What a script computes into a variable: no secret that stands in it."""
_MOST_FAULTS = 20


def publish(pack: Path, repository: Path, *, homes: bool = False) -> None:
    """Check the pack, copy it into the repository, and write its entry into the index.

    Args:
        homes: the pack may hold paths of homes, and its entry says so. Each run records ``HOME`` and ``PATH``.

    Raises:
        DataError: the pack may not be published, each reason was printed; or another one of its name is there.
        UsageError: no directory, or no pack of a campaign.
    """
    if not repository.is_dir():
        raise UsageError(f"{repository} is no directory", then="clone the repository of contributions first")
    _refuse(list(faults(pack, homes=homes)), pack, "correct what is named above; nothing was published")
    entry = _entry(pack, homes=homes)
    target = repository / FOLDER / entry["pack"]
    _refuse_links(target.parent, repository)
    with locked(repository):  # of two at once neither loses the other's entry
        entries = _read_index(repository)
        if target.exists() and sha256(target) != entry["sha256"]:
            raise DataError(
                f"{target} exists already with other content",
                then="a published pack never changes; pack a new campaign",
            )
        if not target.exists():
            with reading(pack):
                create_exclusively(target, pack.read_bytes())
        _write_index(repository, {**entries, entry["pack"]: entry})
    _log.info(
        f"{target}: {counted(entry['runs'], 'run')} of {entry['campaign']}; commit it together with {FOLDER}/{INDEX}"
    )


def validate(repository: Path) -> None:
    """Check every pack of the repository against the index, and by itself as ``publish`` does.

    Raises:
        DataError: something may not be there; each fault was printed.
        UsageError: the directory holds no contributions.
    """
    folder = repository / FOLDER
    if not folder.is_dir():
        raise UsageError(f"{repository} has no {FOLDER}/", then=f"gpubench results publish PACK --to {repository}")
    _refuse_links(folder, repository)
    entries = _read_index(repository)
    packs = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob(f"*{SUFFIX}"))}
    wrong = [f"{folder / name}: missing, although the index names it" for name in entries.keys() - packs.keys()]
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            wrong.append(f"{path}: a link, or no plain file")
            packs.pop(path.relative_to(folder).as_posix(), None)
        elif path.is_file() and path not in packs.values() and path != folder / INDEX:
            wrong.append(f"{path}: no pack, and not the index")
    for name, path in packs.items():
        listed = entries.get(name, {})
        homes = listed.get("homes") is True
        if own := list(faults(path, homes=homes)):
            wrong += own
        elif (entry := _entry(path, homes=homes))["pack"] != name:
            wrong.append(f"{path}: belongs to {FOLDER}/{entry['pack']}")
        elif listed != entry:
            wrong.append(f"{path}: the index {'has other facts about it' if listed else 'lacks it'}")
    _refuse(wrong, folder, "correct or remove what is named above, and leave the rest as it is")
    _log.info(f"{folder}: {counted(len(packs), 'pack')}, nothing wrong")


def faults(pack: Path, *, homes: bool) -> Iterator[str]:
    """Why a pack may not be published, a line each; raises UsageError where it is no pack. ``homes`` as for publish."""
    if not pack.is_file() or not pack.name.endswith(SUFFIX):
        raise UsageError(f"{pack} is no pack", then="make one: gpubench results pack DIR")
    if (size := pack.stat().st_size) > MOST_BYTES:
        yield f"{pack}: {format_bytes(size)}, at most {format_bytes(MOST_BYTES)} are allowed"
        return
    if findings := check(pack):
        yield from map(str, findings)
        return
    campaign = opened(pack)
    if not isinstance(campaign, Campaign):
        yield f"{pack}: an import; only campaigns prove what ran where"
        return
    ok = [result.directory for result in account_now(campaign).outcomes if result.status == "ok" and result.directory]
    if not ok:
        yield f"{pack}: no run of it ended ok"
    for run in ok:
        if lacking := [part for part in PROVEN if not read_provenance(run).get(part)]:
            yield f"{pack}:runs/{run.name}/provenance.json: no {' and no '.join(lacking)}"
    unknown, index = unknown_files(pack)
    yield from (f"{pack}:{name}: no campaign has such a file" for name in unknown)
    yield from (f"{pack}:{what}" for what in _private("pack.json", index, homes))
    for path in sorted(campaign.directory.rglob("*")):
        if path.is_file() and path != campaign.node_half:
            inside = f"{pack}:{path.relative_to(campaign.directory)}"
            try:
                yield from (f"{inside}: {what}" for name, text in _texts(path) for what in _private(name, text, homes))
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError, DataError) as error:
                yield f"{inside}: it can't be unpacked: {error}"


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """The file's text, or those of the files in an archive of logs; with names."""
    if path.suffix != ".zip":
        with reading(path):
            yield path.name, path.read_text(encoding="utf-8", errors="replace")
        return
    with zipfile.ZipFile(path) as archive:
        if wrong := too_much(sum(info.file_size for info in archive.infolist()), path.stat().st_size):
            raise DataError(wrong)
        for name in archive.namelist():
            yield name, archive.read(name).decode("utf-8", "replace")


def _private(name: str, text: str, homes: bool) -> Iterator[str]:
    """Passwords and paths of homes in a text: a line for the first of each."""
    for number, line in enumerate(text.splitlines(), 1):
        if holds_secret(_EXPANDED.sub("", line)):
            yield f"line {number} of {name} holds what looks like a password"
            break
    else:
        try:
            plain = parse_json(text) if name.endswith(".json") else None
        except ValueError:
            plain = None
        if isinstance(plain, dict) and (refused := secrets(plain, lambda key: f"{name}, {key}")):
            yield shortened(refused[0].what, 200)
    if not homes and (home := HOME.search(text)):
        number = text.count("\n", 0, home.start()) + 1
        yield f"line {number} of {name} holds the path of a home; publish --allow-homes accepts it"


def _entry(pack: Path, *, homes: bool) -> dict[str, Any]:
    """The index's entry for a pack: all of it can be computed from the pack again."""
    campaign = opened(pack)
    assert isinstance(campaign, Campaign)
    plan = campaign.plan
    return {
        "pack": f"{plan.site.name}/{plan.campaign}{SUFFIX}",
        "sha256": sha256(pack),
        "site": plan.site.name,
        "campaign": plan.campaign,
        "created_at": plan.created_at,
        "suite": plan.suite,
        "variants": {
            variant.label: variant.image.ucx_version if variant.image else variant.ucx for variant in plan.variants
        },
        "runs": sum(result.status == "ok" for result in account_now(campaign).outcomes),
        "gpubench": plan.gpubench,
        **({"homes": True} if homes else {}),
    }


def _read_index(repository: Path) -> dict[str, dict[str, Any]]:
    path = repository / FOLDER / INDEX
    try:
        with reading(path):
            plain = parse_json(path.read_bytes())
        if plain["schema"] != SCHEMA:
            raise DataError(f"{path} is {plain['schema']}, not {SCHEMA}", then="use the gpubench that wrote it")
        entries = {str(entry["pack"]): dict(entry) for entry in plain["packs"]}
        if len(entries) < len(plain["packs"]):
            raise ValueError("it names a pack twice")
        return entries
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is damaged: {error}", then="take it from the repository's history") from None


def _write_index(repository: Path, entries: dict[str, dict[str, Any]]) -> None:
    plain = {"schema": SCHEMA, "packs": [entries[name] for name in sorted(entries)]}
    write_atomically(repository / FOLDER / INDEX, (json.dumps(plain, indent=1, ensure_ascii=False) + "\n").encode())


def _refuse_links(folder: Path, repository: Path) -> None:
    """Raise DataError where a folder of the repository is a link: it may lead out of the repository."""
    for parent in (folder, *folder.parents):
        if parent == repository:
            return
        if parent.is_symlink():
            raise DataError(f"{parent} is a link", then="make it a directory, or take another copy of the repository")


def _refuse(wrong: list[str], what: Path, then: str) -> None:
    for line in wrong[:_MOST_FAULTS]:
        _log.info(line)
    if len(wrong) > _MOST_FAULTS:
        _log.info(f"… and {len(wrong) - _MOST_FAULTS} more")
    if wrong:
        count = f"{len(wrong)} faults" if len(wrong) > 1 else "a fault"
        raise DataError(f"{what} has {count}", then=then)
