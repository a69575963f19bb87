"""``gpubench results pack``: a campaign or an import as one file.

It may hold a copy without paths of people's homes, whose hashes are made anew.

A repository of packs that several people and sites add to: ``results submit`` puts one in, ``results check`` looks.

The repository holds ``contributions/<site>/<campaign>.gpubench.zip`` and ``contributions/index.json``, which names each
with its hash. A pack may have a signature of ``ssh-keygen -Y sign`` beside it (``….sig``, namespace ``gpubench``).
The repository's ``allowed_signers`` says who may sign. A pack without a signature is accepted, and said.
"""

import dataclasses
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.cli.campaign.running import account_now, open_states
from gpubench.cli.results.open_target import newest, opened, root_of
from gpubench.cli.say import say, warn
from gpubench.errors import DataError, MissingToolError, UsageError
from gpubench.files import create_exclusively, reading, temporary_directory, write_atomically, writing
from gpubench.importers.directory import NOTE, TABLE
from gpubench.model.quantities import format_bytes
from gpubench.model.secrets import holds_secret, secrets
from gpubench.model.text import counted, shortened
from gpubench.spec.plain import content_id, parse_json
from gpubench.spec.records import DATA_FOLDER, RUN_FILE
from gpubench.store.campaign import CACHE_FILE, Campaign
from gpubench.store.packs import HOMES_REPLACED, INDEX, SUFFIX, Index, is_plain, read_index, write_pack
from gpubench.store.rundirs import Records, is_temporary, read_provenance

HOME = re.compile(r"/(?P<root>home|Users)/(?!(?:user|runner|Shared)\b)[^/\s\"':;,)]+")
"""A home that names a person: ``/root``, a placeholder, and that of CI's machines name none."""
PLACEHOLDER = r"/\g<root>/user"
_Edit = Callable[[bytes], bytes]


def copy_without_homes(files: Mapping[str, Path], into: Path) -> dict[str, Path]:
    """Write the files below ``into`` with ``/home/user`` for every home, in archives of logs too.

    A manifest is named by the hash of its content, and a run's record holds the hashes of the run's other files: both
    are made anew, so that the copy is as consistent as the original. The node half (``node.pyz``) is left as it is.

    Args:
        files: of a campaign, by their names below its directory.
        into: an empty directory.

    Returns:
        The copies by the same names; a manifest's name may differ.
    """
    content: dict[str, bytes] = {}
    for name, path in files.items():
        with reading(path):
            content[name] = path.read_bytes()
    plain = {name: _edited(name, data, _replace_homes) for name, data in content.items()}
    ids = {
        Path(name).stem: content_id(json.loads(plain[name]), len(Path(name).stem))
        for name in content
        if name.startswith("manifests/") and name.endswith(".json") and plain[name] != content[name]
    }
    names = {name: _replaced(name.encode(), ids).decode() for name in content}
    plain = {names[name]: _edited(name, data, lambda one: _replaced(one, ids)) for name, data in plain.items()}
    for record in [name for name in plain if name.endswith(f"/{RUN_FILE}")]:
        beside = [name for name in content if name.startswith(record.removesuffix(RUN_FILE)) and name != record]
        plain[record] = _replaced(plain[record], {_sha256(content[name]): _sha256(plain[name]) for name in beside})
    copies = {name: into / name for name in plain}
    for name, path in copies.items():
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(plain[name])
    return copies


def _edited(name: str, data: bytes, edit: _Edit) -> bytes:
    if name.endswith(".pyz"):
        return data
    return _archive(data, edit) if name.endswith(".zip") else edit(data)


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


_DERIVED = {CACHE_FILE, "results.parquet", "verdicts.json", "report.html", "report.md"}
_LEFT_OUT = {*_DERIVED, ".fetch", ".rsync-partial", DATA_FOLDER, INDEX}
_MOST_LINES = 8
_ENDED = ("ok", "failed", "skipped")


def pack(directory: Path | None, out: Path | None, *, homes: bool = True) -> None:
    """Write the pack and say what is in it. Without ``homes``: of a copy in which no path names anybody's home.

    Raises:
        UsageError: no campaign and no import, a job of it runs, ``out`` is something else already or lies inside.
        DataError: a link, or a file that is none, in a campaign.
    """
    directory = newest(None, with_results=True) if directory is None else root_of(directory)
    if directory.is_file():
        raise UsageError(f"{directory} is a file", then="name the directory of a campaign or of an import")
    target = out or Path(f"{directory.resolve().name}{SUFFIX}")
    _refuse_to_harm(directory, target)
    kept = opened(directory)
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
    say(f"{target}: {index.what} {index.name}, {len(written.files)} files, {size}; what is derived is left out")


def _refuse_to_harm(directory: Path, target: Path) -> None:
    if target.resolve().is_relative_to(directory.resolve()):
        raise UsageError(f"{target} lies in what is to be packed", then="name a file elsewhere with --out")
    if target.is_dir():
        raise UsageError(f"{target} is a directory", then="name a file with --out")
    if target.exists():
        try:
            read_index(target)
        except DataError:
            raise UsageError(f"{target} is there and is no pack", then="name another file with --out") from None


def _index(campaign: Campaign) -> Index:
    """What the pack says of runs that it lacks; raises UsageError while one may come."""
    records = Records()
    accounting = account_now(campaign, records)
    states = open_states(campaign, records)
    alive = sorted(job for job, state in states.items() if state.alive)
    if alive:
        raise UsageError(
            f"{campaign.directory}: job {', '.join(alive)} is still running",
            then=f"pack it when it has ended; how it stands: gpubench status {campaign.directory}",
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
                raise DataError(f"{path!r} can't stand in a pack under that name", then="rename it, or remove it")
            yield inside, path


SCHEMA = "gpubench/contributions/1"
FOLDER, INDEX_FILE, SIGNERS, SIGNATURE = "contributions", "index.json", "allowed_signers", ".sig"
MOST_BYTES = 64 * 2**20
"""Of one pack: repositories keep every version for ever."""
NAMESPACE = "gpubench"
PROVEN = ("processes", "nodes")
"""Parts of a run's provenance without which nobody can say what ran where."""

_EXPANDED = re.compile(r"\b[A-Z_][A-Z0-9_]*=[\"']?\$\S*")
_MOST_FAULTS = 20
_HOMES = "; results pack --no-homes replaces it, submit --allow-homes publishes it"


def submit(pack: Path, repository: Path, *, homes: bool = False) -> None:
    """Check the pack, copy it into the repository, and write its entry into the index.

    ``homes``: paths of homes may stand in it. Each run records ``HOME`` and ``PATH``, so that a pack of somebody
    who works at home has some, unless ``results pack --no-homes`` made it; the entry says so, for everybody to see.

    Raises:
        DataError: the pack may not be published, each reason was printed; or another one of its name is there.
        UsageError: no directory, or no pack of a campaign.
    """
    if not repository.is_dir():
        raise UsageError(f"{repository} is no directory", then="clone the repository of contributions first")
    _refuse(list(faults(pack, homes=homes)), pack, "mend what is named above; nothing was published")
    entry = {**_entry(pack), **({"homes": True} if homes else {})}
    target = repository / FOLDER / entry["pack"]
    entries = _read_index(repository)
    if target.exists() and _digest(target) != entry["sha256"]:
        raise DataError(
            f"{target} is there with other content", then="a published pack never changes; pack a new campaign"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        with reading(pack):
            create_exclusively(target, pack.read_bytes())
    signature = pack.with_name(pack.name + SIGNATURE)
    if signature.is_file():
        with reading(signature):
            write_atomically(target.with_name(target.name + SIGNATURE), signature.read_bytes())
    _write_index(repository, {**entries, entry["pack"]: entry})
    index = f"{FOLDER}/{INDEX_FILE}"
    say(f"{target}: {counted(entry['runs'], 'run')} of {entry['campaign']}; commit it together with {index}")
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
    entries = _read_index(repository)
    found, wrong = {}, []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            wrong.append(f"{path}: a link, or no plain file")
        elif path.is_file() and name.endswith(SUFFIX):
            found[name] = path
        elif path.is_file() and name != INDEX_FILE and name.removesuffix(SIGNATURE) not in entries:
            wrong.append(f"{path}: no pack, no signature of one, and not the index")
    wrong += [f"{folder / name}: the index names it, and it is missing" for name in entries.keys() - found.keys()]
    for name, path in found.items():
        said = entries.get(name, {})
        allowed = {"homes": True} if said.get("homes") is True else {}
        own = list(faults(path, homes=bool(allowed)))
        if not own:
            entry = {**_entry(path), **allowed}
            if entry["pack"] != name:
                own.append(f"{path}: belongs to {FOLDER}/{entry['pack']}")
            elif said != entry:
                own.append(f"{path}: the index {'says something else of it' if said else 'lacks it'}")
        wrong += own or list(_signed(path, repository / SIGNERS))
    _refuse(wrong, folder, "mend or remove what is named above, and leave the rest as it is")
    say(f"{folder}: {counted(len(found), 'pack')}, nothing wrong")


def faults(pack: Path, *, homes: bool) -> Iterator[str]:
    """Why a pack may not be published, a line each; raises UsageError where it is no pack. ``homes`` as for submit."""
    if not pack.is_file() or not pack.name.endswith(SUFFIX):
        raise UsageError(f"{pack} is no pack", then="make one: gpubench results pack DIR")
    size = pack.stat().st_size
    if size > MOST_BYTES:
        yield f"{pack}: {format_bytes(size)}, {format_bytes(MOST_BYTES)} are the most"
        return
    from gpubench.cli.results.fsck import check_pack

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
        if path.is_file() and path.suffix != ".pyz":
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
    """What of a text isn't for everybody: a line for the first of each kind."""
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
    """What the index says of a pack: all of it can be worked out from the pack again."""
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
    path = repository / FOLDER / INDEX_FILE
    try:
        plain = parse_json(path.read_bytes())
        if plain["schema"] != SCHEMA:
            raise DataError(f"{path} is {plain['schema']}, not {SCHEMA}", then="use the gpubench that wrote it")
        return {str(one["pack"]): dict(one) for one in plain["packs"]}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is damaged: {error}", then="take it from the repository's history") from None


def _write_index(repository: Path, entries: dict[str, dict[str, Any]]) -> None:
    plain = {"schema": SCHEMA, "packs": [entries[name] for name in sorted(entries)]}
    write_atomically(
        repository / FOLDER / INDEX_FILE, (json.dumps(plain, indent=1, ensure_ascii=False) + "\n").encode()
    )


def _signed(pack: Path, signers: Path) -> Iterator[str]:
    """A line where a signature is wrong; one that is missing, or that nobody can check, is said and no fault."""
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
