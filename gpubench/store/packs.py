"""A campaign or an import as one file: a zip archive of its directory, with a note on what is missing.

The same content gives the same bytes: sorted names, no times, owners or modes (with one version of zlib). An archive
with links, doubles, names that lead out of a directory, or far more bytes than its size can honestly hold is refused;
only what a campaign or an import consists of is unpacked. Whether its files are those that the runs wrote says
``results fsck``, by the hashes in the runs' records.
"""

import dataclasses
import io
import json
import shutil
import stat
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

import pydantic

from gpubench.errors import DataError, MissingToolError
from gpubench.files import reading, write_atomically, writing
from gpubench.node.spec.plain import parse_json
from gpubench.render.node_half import EPOCH

PACK = "gpubench/pack/1"
INDEX = "pack.json"
SUFFIX = ".gpubench.zip"
_REGULAR = (stat.S_IFREG | 0o644) << 16
_UNIX = 3
_MOST_RATIO, _FREE_OF_RATIO = 100, 256 * 2**20
"""So many times its size a pack may unpack to; a small one to more. Samples shrink to a tenth, logs to a fiftieth."""
_MOST_INDEX_BYTES = 64 * 2**20
_LONGEST_PART, _LONGEST_NAME = 255, 1000
"""Bytes that a Linux file system takes, and that leave room for the directory."""
_THEN = "ask whoever packed it for the file again"
_DAMAGED = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError)
"""What zipfile raises for a torn, encrypted or otherwise odd archive."""

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
        missing: planned runs without a result, in words.
        open_jobs: jobs that nobody could tell the end of.
        ends: how jobs ended, by name, where their runs are missing.
    """

    what: What
    name: str
    missing: Sequence[str] = ()
    open_jobs: Sequence[str] = ()
    ends: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Pack:
    """A pack that was read: where it stands, and what it says of itself."""

    path: Path
    index: Index

    def beside(self, name: str) -> Path:
        """Where a file stands that is made of the pack: ``x.gpubench.zip`` has its ``x.report.html``."""
        stem = self.path.name.removesuffix(SUFFIX)
        return self.path.with_name(f"{stem if stem != self.path.name else self.path.stem}.{name}")


def write_pack(out: Path, index: Index, files: Mapping[str, Path]) -> None:
    """Write the pack. Raises MissingToolError, DataError."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            with reading(files[name]):
                _add(archive, name, files[name].read_bytes())
        plain = {"schema": PACK, **dataclasses.asdict(index)}
        _add(archive, INDEX, (json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode())
        needed = sum(info.file_size for info in archive.infolist())
    if wrong := too_much(needed, buffer.getbuffer().nbytes):
        raise DataError(f"{out} would be refused: {wrong}", then="shorten logs in jobs/ that repeat themselves")
    write_atomically(out, buffer.getvalue())


def read_index(path: Path) -> Index:
    """What a pack says of itself; raises DataError where it is none, or holds what may not be in one."""
    with _opened(path) as archive:
        return _index(path, archive)


def unpack(path: Path, into: Path) -> Index:
    """Write the files below ``into``, an empty directory of our own.

    Raises:
        DataError: no pack, or a damaged one; nothing of it can be used then.
        MissingToolError: the disk is full.
    """
    with _opened(path) as archive:
        index = _index(path, archive)
        members = [info for info in archive.infolist() if info.filename.partition("/")[0] in KNOWN[index.what]]
        needed = sum(info.file_size for info in members)
        if needed > shutil.disk_usage(into).free:
            raise MissingToolError(f"{path} takes {needed} bytes in {into}", then="free some space, or set TMPDIR")
        for info in members:
            target = into / info.filename
            with writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    with archive.open(info) as source, target.open("xb") as out:
                        shutil.copyfileobj(source, out)  # zipfile reads as many bytes as the archive says, and no more
                except _DAMAGED as error:
                    raise DataError(f"{path}: {info.filename} can't be unpacked: {error}", then=_THEN) from None
        return index


def too_much(needed: int, packed: int) -> str:
    """Why ``packed`` bytes that unpack to ``needed`` can't be honest; empty where they can."""
    most = _FREE_OF_RATIO + _MOST_RATIO * packed
    return f"its {packed} bytes would unpack to {needed}, at most {most} are allowed" if needed > most else ""


def is_plain(name: str) -> bool:
    """Whether it stays below the directory that it is joined to, and a file system takes it."""
    parts = name.split("/")
    if not name.isprintable() or "\\" in name or {"", ".", ".."} & set(parts):
        return False
    return len(name.encode()) <= _LONGEST_NAME and all(len(part.encode()) <= _LONGEST_PART for part in parts)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, EPOCH)
    info.create_system, info.external_attr = _UNIX, _REGULAR
    archive.writestr(info, data, zipfile.ZIP_DEFLATED, 6)


def _opened(path: Path) -> zipfile.ZipFile:
    with reading(path):
        try:
            return zipfile.ZipFile(path)
        except _DAMAGED:
            raise DataError(
                f"{path} is no pack of gpubench, or it is cut off",
                then="name a directory, or what gpubench results pack wrote",
            ) from None


def _index(path: Path, archive: zipfile.ZipFile) -> Index:
    if wrong := _refused(archive, path.stat().st_size):
        raise DataError(f"{path}: {wrong}", then="don't use it")
    try:
        plain = parse_json(archive.read(INDEX))
        if isinstance(plain, dict) and plain.get("schema") != PACK:
            schema = plain.get("schema") or "no pack"
            raise DataError(f"{path} is {schema}, not {PACK}", then="use the gpubench that wrote it")
        return pydantic.TypeAdapter(Index).validate_python(plain)
    except (KeyError, *_DAMAGED):
        raise DataError(
            f"{path} is no pack of gpubench: it has no {INDEX} that can be read",
            then="name what gpubench results pack wrote",
        ) from None


def _refused(archive: zipfile.ZipFile, size: int) -> str:
    """Why nothing of the archive may be written; empty where it may."""
    members = archive.infolist()
    names = {info.orig_filename for info in members}
    if len({name.casefold() for name in names}) < len(members):
        return "two of its files have one name, or names that differ only in capitals"
    faults = (_fault(info, names) for info in members)
    return next(filter(None, faults), "") or too_much(sum(info.file_size for info in members), size)


def _fault(info: zipfile.ZipInfo, names: Collection[str]) -> str:
    """Why a file of an archive with such ``names`` may not be written; empty where it may."""
    name, kind, what = info.orig_filename, stat.S_IFMT(info.external_attr >> 16), ""
    if info.is_dir() or kind not in (0, stat.S_IFREG):
        what = "is a link, or no plain file"
    elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        what = "is compressed in another way than gpubench does it"
    elif not is_plain(name):
        what = "leads out of a directory, or is too long"
    elif any(str(folder) in names for folder in PurePosixPath(name).parents):
        what = "is below a file"
    elif name == INDEX and info.file_size > _MOST_INDEX_BYTES:
        what = "is too large"
    return f"{name!r} {what}" if what else ""
