"""A repository of packs that several people and sites add to: ``results submit`` puts one in, ``results check`` looks.

The repository holds ``contributions/<site>/<campaign>.gpubench.zip`` and ``contributions/index.json``, which names each
with its hash. A pack may have a signature of ``ssh-keygen -Y sign`` beside it (``….sig``, namespace ``gpubench``).
The repository's ``allowed_signers`` says who may sign. A pack without a signature is accepted and reported.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gpubench.cli.campaign.running import account_now
from gpubench.cli.results.fsck import check_pack
from gpubench.cli.results.open_target import opened
from gpubench.cli.results.pack import HOME
from gpubench.cli.say import say, warn
from gpubench.errors import DataError, MissingToolError, UsageError
from gpubench.files import create_exclusively, locked, reading, write_atomically
from gpubench.fsck import archive_fault
from gpubench.model.quantities import format_bytes
from gpubench.model.secrets import holds_secret, secrets
from gpubench.model.text import counted, shortened
from gpubench.spec.plain import parse_json
from gpubench.store.campaign import Campaign
from gpubench.store.packs import SUFFIX
from gpubench.store.rundirs import read_provenance

SCHEMA = "gpubench/contributions/1"
FOLDER, INDEX, SIGNERS, SIGNATURE = "contributions", "index.json", "allowed_signers", ".sig"
MOST_BYTES = 64 * 2**20
"""Maximum size of one pack: repositories keep every version permanently."""
NAMESPACE = "gpubench"
PROVEN = ("processes", "nodes")
"""Parts of a run's provenance that are needed to know what ran where."""

_EXPANDED = re.compile(r"\b[A-Z_][A-Z0-9_]*=[\"']?\$\S*")
_MOST_FAULTS = 20
_HOMES = "; results pack --no-homes replaces it, submit --allow-homes publishes it"


def submit(pack: Path, repository: Path, *, homes: bool = False) -> None:
    """Check the pack, copy it into the repository, and write its entry into the index.

    ``homes``: the pack may hold paths of homes. Each run records ``HOME`` and ``PATH``, so a campaign that ran
    in a home directory has some, unless ``results pack --no-homes`` made the pack. The index entry says so.

    Raises:
        DataError: the pack may not be published, each reason was printed; or another one of its name is there.
        UsageError: no directory, or no pack of a campaign.
    """
    if not repository.is_dir():
        raise UsageError(f"{repository} is no directory", then="clone the repository of contributions first")
    _refuse(list(faults(pack, homes=homes)), pack, "correct what is named above; nothing was published")
    entry = {**_entry(pack), **({"homes": True} if homes else {})}
    target = repository / FOLDER / entry["pack"]
    signature = pack.with_name(pack.name + SIGNATURE)
    _refuse_links(target.parent, repository)
    with locked(repository):  # of two at once neither loses the other's entry
        entries = _read_index(repository)
        if target.exists() and _digest(target) != entry["sha256"]:
            raise DataError(
                f"{target} exists already with other content",
                then="a published pack never changes; pack a new campaign",
            )
        if not target.exists():
            with reading(pack):
                create_exclusively(target, pack.read_bytes())
        if signature.is_file():
            with reading(signature):
                write_atomically(target.with_name(target.name + SIGNATURE), signature.read_bytes())
        _write_index(repository, {**entries, entry["pack"]: entry})
    say(f"{target}: {counted(entry['runs'], 'run')} of {entry['campaign']}; commit it together with {FOLDER}/{INDEX}")
    if not signature.is_file():
        say(f"not signed; to sign it first: ssh-keygen -Y sign -n {NAMESPACE} -f KEY {pack}")


def check(repository: Path) -> None:
    """Check every pack of the repository against the index, and by itself as ``submit`` does.

    Raises:
        DataError: something may not be there; each fault was printed.
        UsageError: the directory holds no contributions.
    """
    folder = repository / FOLDER
    if not folder.is_dir():
        raise UsageError(f"{repository} has no {FOLDER}/", then=f"gpubench results submit PACK --to {repository}")
    _refuse_links(folder, repository)
    entries = _read_index(repository)
    found, wrong = {}, []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            wrong.append(f"{path}: a link, or no plain file")
        elif path.is_file() and name.endswith(SUFFIX):
            found[name] = path
        elif path.is_file() and name != INDEX and name.removesuffix(SIGNATURE) not in entries:
            wrong.append(f"{path}: no pack, no signature of one, and not the index")
    wrong += [f"{folder / name}: missing, although the index names it" for name in entries.keys() - found.keys()]
    for name, path in found.items():
        said = entries.get(name, {})
        allowed = {"homes": True} if said.get("homes") is True else {}
        own = list(faults(path, homes=bool(allowed)))
        if not own:
            entry = {**_entry(path), **allowed}
            if entry["pack"] != name:
                own.append(f"{path}: belongs to {FOLDER}/{entry['pack']}")
            elif said != entry:
                own.append(f"{path}: the index {'has other facts about it' if said else 'lacks it'}")
        wrong += own or list(_signed(path, repository / SIGNERS))
    _refuse(wrong, folder, "correct or remove what is named above, and leave the rest as it is")
    say(f"{folder}: {counted(len(found), 'pack')}, nothing wrong")


def _refuse_links(folder: Path, repository: Path) -> None:
    """Raise DataError where a folder of the repository is a link: it may lead out of the repository."""
    for one in (folder, *folder.parents):
        if one == repository:
            return
        if one.is_symlink():
            raise DataError(f"{one} is a link", then="make it a directory, or take another copy of the repository")


def faults(pack: Path, *, homes: bool) -> Iterator[str]:
    """Why a pack may not be published, a line each; raises UsageError where it is no pack. ``homes`` as for submit."""
    if not pack.is_file() or not pack.name.endswith(SUFFIX):
        raise UsageError(f"{pack} is no pack", then="make one: gpubench results pack DIR")
    size = pack.stat().st_size
    if size > MOST_BYTES:
        yield f"{pack}: {format_bytes(size)}, at most {format_bytes(MOST_BYTES)} are allowed"
        return
    checked = check_pack(pack)
    if checked.findings:
        yield from map(str, checked.findings)
        return
    campaign = opened(pack)
    if not isinstance(campaign, Campaign):
        yield f"{pack}: an import; only campaigns prove what ran where"
        return
    ok = [one.directory for one in account_now(campaign).outcomes if one.status == "ok" and one.directory]
    if not ok:
        yield f"{pack}: no run of it ended ok"
    for run in ok:
        lacking = [part for part in PROVEN if not read_provenance(run).get(part)]
        if lacking:
            yield f"{pack}:runs/{run.name}/provenance.json: no {' and no '.join(lacking)}"
    for path in sorted(campaign.directory.rglob("*")):
        if path.is_file() and path != campaign.node_half:
            if path.suffix == ".zip" and (wrong := archive_fault(path)):
                yield f"{pack}:{path.relative_to(campaign.directory)}: {wrong}"
                continue
            for name, text in _texts(path):
                for what in _private(name, text, homes=homes):
                    yield f"{pack}:{path.relative_to(campaign.directory)}: {what}"


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """The file's text, or those of the files in an archive of logs; with names."""
    with reading(path):
        if path.suffix != ".zip":
            yield path.name, path.read_text(encoding="utf-8", errors="replace")
            return
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield name, archive.read(name).decode("utf-8", "replace")


def _private(name: str, text: str, *, homes: bool) -> Iterator[str]:
    """Private parts of a text (passwords, homes): a line for the first of each kind."""
    lines = text.splitlines()
    home = "" if homes else _first(lines, HOME.search, f"{name} holds the path of a home{_HOMES}")
    # What a script computes into a variable is no secret that stands in it.
    secret = _first(
        lines, lambda line: holds_secret(_EXPANDED.sub("", line)), f"{name} holds what looks like a password"
    )
    if not secret and name.endswith(".json"):
        try:
            plain = parse_json(text)
        except ValueError:
            plain = None
        if isinstance(plain, dict) and (refused := secrets(plain, lambda key: f"{name}, {key}")):
            secret = shortened(refused[0].what, 200)
    yield from filter(None, (home, secret))


def _first(lines: Sequence[str], holds: Callable[[str], object], what: str) -> str:
    number = next((number for number, line in enumerate(lines, 1) if holds(line)), 0)
    return f"line {number} of {what}" if number else ""


def _entry(pack: Path) -> dict[str, Any]:
    """The index's entry for a pack: all of it can be computed from the pack again."""
    campaign = opened(pack)
    assert isinstance(campaign, Campaign)
    plan = campaign.plan
    return {
        "pack": f"{plan.site.name}/{plan.campaign}{SUFFIX}",
        "sha256": _digest(pack),
        "site": plan.site.name,
        "campaign": plan.campaign,
        "created_at": plan.created_at,
        "suite": plan.suite,
        "variants": {one.label: one.image.ucx_version if one.image else one.ucx for one in plan.variants},
        "runs": sum(one.status == "ok" for one in account_now(campaign).outcomes),
        "gpubench": plan.gpubench,
    }


def _digest(path: Path) -> str:
    with reading(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_index(repository: Path) -> dict[str, dict[str, Any]]:
    path = repository / FOLDER / INDEX
    try:
        with reading(path):
            data = path.read_bytes()
        plain = parse_json(data)
        if plain["schema"] != SCHEMA:
            raise DataError(f"{path} is {plain['schema']}, not {SCHEMA}", then="use the gpubench that wrote it")
        entries = {str(one["pack"]): dict(one) for one in plain["packs"]}
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


def _signed(pack: Path, signers: Path) -> Iterator[str]:
    """A line if a signature is wrong; a missing signature, or one that can't be checked, is reported but no fault."""
    signature = pack.with_name(pack.name + SIGNATURE)
    if not signature.is_file():
        warn(f"{pack}: not signed")
        return
    if not signers.is_file():
        warn(f"{pack}: signed, but the repository has no {SIGNERS} that says whose signatures count")
        return
    if shutil.which("ssh-keygen") is None:
        raise MissingToolError("ssh-keygen, which checks signatures, is not installed", then="install OpenSSH")
    found = _ssh_keygen("find-principals", pack, "-s", str(signature), "-f", str(signers))
    who = found.stdout.decode("utf-8", "replace").split("\n")[0].strip()
    words = ("-n", NAMESPACE, "-f", str(signers), "-I", who, "-s", str(signature))
    if found.returncode or _ssh_keygen("verify", pack, *words).returncode:
        yield f"{signature}: no valid signature of anybody in {SIGNERS}"
    else:
        say(f"{pack}: signed by {who}")


def _ssh_keygen(what: str, pack: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    with pack.open("rb") as content:
        return subprocess.run(
            ["ssh-keygen", "-Y", what, *words], stdin=content, capture_output=True, check=False, timeout=60
        )


def _refuse(wrong: list[str], what: Path, then: str) -> None:
    for line in wrong[:_MOST_FAULTS]:
        say(line)
    if len(wrong) > _MOST_FAULTS:
        say(f"… and {len(wrong) - _MOST_FAULTS} more")
    if wrong:
        count = f"{len(wrong)} faults" if len(wrong) > 1 else "a fault"
        raise DataError(f"{what} has {count}", then=then)
