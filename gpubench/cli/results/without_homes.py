"""A copy of a campaign without paths of people's homes, whose hashes are made anew."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from gpubench.files import reading, writing
from gpubench.spec.plain import content_id
from gpubench.spec.records import RUN_FILE

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
