"""A campaign or an import as one file: a plain zip archive with a list of its files and their hashes.

The same content gives the same bytes: sorted names, no times, owners or modes (with one version of zlib). What is read
out of a pack is trusted no further than its list goes: other names, links, doubles, changed bytes, and more bytes than
any campaign packs into a file of that size are refused; of what is listed only what a campaign or an import consists of
is unpacked. The list is no signature: who changes a file and the list isn't found out.
"""

import dataclasses
import hashlib
import io
import json
import shutil
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from gpubench.errors import DataError, MissingToolError
from gpubench.files import reading, write_atomically, writing
from gpubench.render.planned import EPOCH
from gpubench.spec.plain import parse_json

PACK = "gpubench/pack/1"
INDEX = "pack.json"
HOMES_REPLACED = "/home/user stands for every home; the hashes are those of this copy, not those that the runs wrote"
SUFFIX = ".gpubench.zip"
_REGULAR = (stat.S_IFREG | 0o644) << 16
_UNIX = 3
_MOST_INDEX_BYTES = 256 * 2**20
_MOST_BYTES = 64 * 2**30
_MOST_RATIO, _FREE_OF_RATIO = 100, 256 * 2**20
"""So many times its size a pack may unpack to; a small one to more. Samples shrink to a tenth, logs to a fiftieth."""
_LONGEST_PART, _LONGEST_NAME = 255, 1000
"""Bytes that a Linux file system takes, and that leave room for the directory."""
_CHUNK = 2**20
_THEN = "ask whoever packed it for the file again"

What = Literal["campaign", "import"]
KNOWN: Mapping[What, frozenset[str]] = {
    "campaign": frozenset(("plan.json", "plan.d", "node.pyz", "paths.json", "manifests", "jobs", "runs")),
    "import": frozenset(("import.json", "results.parquet")),
}
"""What they consist of, less what is derived: names at the top."""


@dataclasses.dataclass(frozen=True)
class Index:
    """``pack.json``.

    Args:
        what: is packed.
        files: bytes and SHA-256 by path below its directory.
        missing: planned runs without a result, in words.
        open_jobs: jobs that nobody could tell the end of.
        ends: how jobs ended, by name, where their runs are missing.
        homes_replaced: paths of homes were replaced before it was packed, and the hashes in it made anew.
    """

    what: What
    name: str
    files: Mapping[str, tuple[int, str]]
    missing: Sequence[str] = ()
    open_jobs: Sequence[str] = ()
    ends: Mapping[str, str] = dataclasses.field(default_factory=dict)
    homes_replaced: bool = False


@dataclasses.dataclass(frozen=True)
class Pack:
    """A pack that was read: where it stands, and what it says of itself."""

    path: Path
    index: Index

    def beside(self, name: str) -> Path:
        """Where a file stands that is made of the pack: ``x.gpubench.zip`` has its ``x.report.html``."""
        stem = self.path.name.removesuffix(SUFFIX)
        return self.path.with_name(f"{stem if stem != self.path.name else self.path.stem}.{name}")


def write_pack(out: Path, index: Index, files: Mapping[str, Path]) -> Index:
    """Write the pack; ``index`` comes back with the files' hashes. Raises MissingToolError, DataError."""
    buffer = io.BytesIO()
    listed: dict[str, tuple[int, str]] = {}
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            with reading(files[name]):
                data = files[name].read_bytes()
            listed[name] = (len(data), hashlib.sha256(data).hexdigest())
            _add(archive, name, data)
        whole = dataclasses.replace(index, files=listed)
        rows = [{"path": name, "bytes": size, "sha256": digest} for name, (size, digest) in listed.items()]
        plain = {"schema": PACK, **dataclasses.asdict(whole), "files": rows}
        _add(archive, INDEX, (json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode())
    if wrong := too_much(_bytes(whole), buffer.getbuffer().nbytes):
        raise DataError(f"{out} would be refused: {wrong}", then="shorten logs in jobs/ that repeat themselves")
    write_atomically(out, buffer.getvalue())
    return whole


def read_index(path: Path) -> Index:
    """What a pack says of itself; raises DataError where it is none, or names what may not be in one."""
    with _opened(path) as archive:
        return _index(path, archive)


def faults(path: Path) -> Iterator[tuple[str, str]]:
    """Files of a pack that aren't what its list says, each with what is wrong; raises DataError as ``read_index``."""
    with _opened(path) as archive:
        index = _index(path, archive)
        yield from _strangers(archive, index)
        for name in sorted(index.files.keys() & set(archive.namelist())):
            try:
                for _ in _content(archive, name, index):
                    pass
            except DataError as error:
                yield name, error.what


def unpack(path: Path, into: Path) -> Index:
    """Write the files below ``into``, an empty directory of our own.

    Raises:
        DataError: no pack, or an edited one; nothing of it can be used then.
        MissingToolError: the disk is full.
    """
    with _opened(path) as archive:
        index = _index(path, archive)
        for name, wrong in _strangers(archive, index):
            raise DataError(f"{path}: {name}: {wrong}", then=_THEN)
        needed = _bytes(index)
        if needed > shutil.disk_usage(into).free:
            raise MissingToolError(f"{path} takes {needed} bytes in {into}", then="free some space, or set TMPDIR")
        for name in sorted(index.files.keys() - unknown(index)):
            target = into / name
            with writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as out:
                    try:
                        out.writelines(_content(archive, name, index))
                    except DataError as error:
                        raise DataError(f"{path}: {name}: {error.what}", then=_THEN) from None
        return index


def unknown(index: Index) -> set[str]:
    """Listed files that belong to no campaign or import; they aren't unpacked."""
    return {name for name in index.files if name.partition("/")[0] not in KNOWN[index.what]}


def _bytes(index: Index) -> int:
    return sum(size for size, _ in index.files.values())


def too_much(needed: int, packed: int) -> str:
    """Why ``packed`` bytes that unpack to ``needed`` can't be honest; empty where they can."""
    most = min(_MOST_BYTES, _FREE_OF_RATIO + _MOST_RATIO * packed)
    return f"its {packed} bytes would unpack to {needed}, at most {most} are allowed" if needed > most else ""


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, EPOCH)
    info.create_system, info.external_attr = _UNIX, _REGULAR
    archive.writestr(info, data, zipfile.ZIP_DEFLATED, 6)


def _opened(path: Path) -> zipfile.ZipFile:
    with reading(path):
        try:
            return zipfile.ZipFile(path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError):
            what = f"{path} is no pack of gpubench, or it is cut off"
            raise DataError(what, then="name a directory, or what gpubench results pack wrote") from None


def _index(path: Path, archive: zipfile.ZipFile) -> Index:
    try:
        info = archive.getinfo(INDEX)
        plain = parse_json(b"".join(_read(archive, info, min(info.file_size, _MOST_INDEX_BYTES))))
    except (KeyError, ValueError, DataError):
        raise DataError(
            f"{path} is no pack of gpubench: it has no {INDEX} that can be read",
            then="name what gpubench results pack wrote",
        ) from None
    schema = plain.get("schema") if isinstance(plain, dict) else None
    if schema != PACK:
        raise DataError(f"{path} is {schema or 'no pack'}, not {PACK}", then="use the gpubench that wrote it")
    try:
        index = _parsed(plain)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"{path}: its {INDEX} is damaged: {error}", then=_THEN) from None
    spellings = {name.casefold() for name in index.files}
    if len(spellings) < len(index.files):
        raise DataError(f"{path} names two files that differ only in capitals", then="don't use it")
    for name in index.files:
        if not is_plain(name):
            raise DataError(
                f"{path} names {name!r}, which leads out of a directory, or is too long", then="don't use it"
            )
        if any(str(folder) in index.files for folder in PurePosixPath(name).parents):
            raise DataError(f"{path} names {name!r} below a file", then="don't use it")
    if wrong := too_much(_bytes(index), path.stat().st_size):
        raise DataError(f"{path} is not accepted as a pack: {wrong}", then=_THEN)
    return index


def _parsed(plain: Mapping[str, Any]) -> Index:
    if plain["what"] not in ("campaign", "import"):
        raise ValueError(f"it holds a {plain['what']}")
    files = {str(one["path"]): (int(one["bytes"]), str(one["sha256"])) for one in plain["files"]}
    if any(size < 0 for size, _ in files.values()):
        raise ValueError("a file has a negative size")
    if len(files) < len(plain["files"]):
        raise ValueError("it names a file twice")
    ends = {str(job): str(end) for job, end in plain["ends"].items()}
    for name in ("missing", "open_jobs"):
        if not isinstance(plain[name], list):
            raise TypeError(f"{plain[name]!r} is no list of lines")
    missing, open_jobs = (tuple(map(str, plain[name])) for name in ("missing", "open_jobs"))
    replaced = plain.get("homes_replaced") is True
    return Index(plain["what"], str(plain["name"]), files, missing, open_jobs, ends, replaced)


def is_plain(name: str) -> bool:
    """Whether it stays below the directory that it is joined to, and a file system takes it."""
    parts = name.split("/")
    if not name.isprintable() or "\\" in name or {"", ".", ".."} & set(parts):
        return False
    return len(name.encode()) <= _LONGEST_NAME and all(len(part.encode()) <= _LONGEST_PART for part in parts)


def _strangers(archive: zipfile.ZipFile, index: Index) -> Iterator[tuple[str, str]]:
    names = Counter(info.orig_filename for info in archive.infolist())
    for name in sorted(name for name, times in names.items() if times > 1):
        yield name, "it is there twice"
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.is_dir() or kind not in (0, stat.S_IFREG) or info.flag_bits & 1:
            yield info.orig_filename, "it is no plain file"
        elif info.orig_filename != INDEX and info.orig_filename not in index.files:
            yield info.orig_filename, f"{INDEX} doesn't name it"
    for name in sorted(index.files.keys() - names.keys()):
        yield name, "it is missing"


def _content(archive: zipfile.ZipFile, name: str, index: Index) -> Iterator[bytes]:
    """The bytes of a listed file; raises DataError behind the last of them where they aren't those that were packed."""
    size, said = index.files[name]
    digest = hashlib.sha256()
    for part in _read(archive, archive.getinfo(name), size):
        digest.update(part)
        yield part
    if digest.hexdigest() != said:
        raise DataError("it isn't what was packed")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> Iterator[bytes]:
    """Never more than ``size`` bytes, whatever they unpack to; raises DataError where there are more, or torn ones."""
    try:
        with archive.open(info) as source:
            while size and (part := source.read(min(size, _CHUNK))):
                size -= len(part)
                yield part
            if source.read(1):
                raise DataError("it is longer than it was when it was packed")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise DataError(f"it can't be unpacked: {error}") from None
