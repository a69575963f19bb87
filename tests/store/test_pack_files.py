"""What a pack holds, byte by byte, and which names and lists of files it may have."""

from __future__ import annotations

import json
import shutil
import stat
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from gpubench.errors import DataError, MissingToolError
from gpubench.store.packs import INDEX, Index, is_plain, read_index, unpack, write_pack

CONTENT = {
    "runs/r-1/run.json": b"{}",
    "runs/r-1/links.jsonl": b"",
    "plan.json": b'{"plan": 1}',
    "jobs/j1/job.log": b"said\n" * 1000,
}
INDEX_OF_TINY = Index("campaign", "tiny ü", ["block 3: lost"], ["j2"], {"j2": "time limit"})


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    files = {}
    for name, data in CONTENT.items():
        files[name] = tmp_path / "c" / name
        files[name].parent.mkdir(parents=True, exist_ok=True)
        files[name].write_bytes(data)
    write_pack(tmp_path / "tiny.gpubench.zip", INDEX_OF_TINY, files)
    return tmp_path / "tiny.gpubench.zip"


def edited(pack: Path, **changes: Any) -> Path:
    """The same files with other lines in the list."""
    with zipfile.ZipFile(pack) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    plain = json.loads(files[INDEX]) | changes
    out = pack.with_name("edited.zip")
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (files | {INDEX: json.dumps(plain).encode()}).items():
            archive.writestr(name, data)
    return out


def test_an_import_is_packed_like_a_campaign(tmp_path: Path) -> None:
    (tmp_path / "import.json").write_text("{}")
    write_pack(tmp_path / "old.gpubench.zip", Index("import", "old"), {"import.json": tmp_path / "import.json"})
    assert read_index(tmp_path / "old.gpubench.zip").what == "import"


def test_a_pack_is_sorted_plain_compressed_files_with_the_list_behind_them(pack: Path) -> None:
    with zipfile.ZipFile(pack) as archive:
        entries = archive.infolist()
        assert json.loads(archive.read(INDEX))["schema"] == "gpubench/pack/1"
        assert "tiny ü".encode() in archive.read(INDEX)
    assert [one.filename for one in entries] == [*sorted(CONTENT), INDEX]
    for one in entries:
        assert (one.create_system, one.external_attr >> 16) == (3, stat.S_IFREG | 0o644)
        assert (one.compress_type, one.date_time) == (zipfile.ZIP_DEFLATED, (1980, 1, 1, 0, 0, 0))


def test_a_pack_is_unpacked_as_it_was(pack: Path, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    assert unpack(pack, tmp_path / "into") == read_index(pack) == INDEX_OF_TINY
    there = {path for path in (tmp_path / "into").rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path / "into").as_posix(): path.read_bytes() for path in there} == CONTENT


def test_a_pack_larger_than_what_is_free_is_not_begun(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, usage = sum(map(len, CONTENT.values())), namedtuple("usage", ("total", "used", "free"))
    (tmp_path / "into").mkdir()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 0, size - 1))
    with pytest.raises(MissingToolError, match=f"takes {size} bytes in .*; free some space, or set TMPDIR$"):
        unpack(pack, tmp_path / "into")
    assert list((tmp_path / "into").iterdir()) == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 0, size))
    unpack(pack, tmp_path / "into")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("runs/r-1/run.json", True),
        ("ü/..a/b..", True),
        ("a" * 255, True),
        ("a" * 256, False),
        ("ü" * 128, False),  # bytes count
        ("/".join(["a" * 199] * 5) + "/", False),
        ("/".join(["a" * 199] * 5), True),
        ("/".join(["a" * 199] * 4 + ["a" * 200]), True),
        ("/".join(["a" * 199] * 4 + ["a" * 201]), False),
        ("", False),
        ("/a", False),
        ("a//b", False),
        ("a/./b", False),
        ("../a", False),
        ("a\\b", False),
        ("a\nb", False),
    ],
)
def test_a_name_is_plain_where_it_stays_below_its_directory_and_a_file_system_takes_it(name: str, plain: bool) -> None:
    assert is_plain(name) is plain


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"what": "thesis"}, "no pack.json that can be read"),
        ({"open_jobs": "j2"}, "no pack.json that can be read"),
        ({"missing": {"a": "b"}}, "no pack.json that can be read"),
        ({"ends": ["j2"]}, "no pack.json that can be read"),
        ({"schema": "gpubench/pack/2"}, "is gpubench/pack/2, not gpubench/pack/1; use the gpubench that wrote it"),
    ],
)
def test_a_list_that_cannot_be_read_says_why(pack: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_index(edited(pack, **changes))


def test_what_is_no_archive_is_no_pack(tmp_path: Path) -> None:
    (tmp_path / "x.gpubench.zip").write_bytes(b"PK" + b"\0" * 50)
    with pytest.raises(DataError, match=r"x\.gpubench\.zip is no pack of gpubench, or it is cut off"):
        read_index(tmp_path / "x.gpubench.zip")


def test_what_its_readers_would_refuse_for_its_size_is_not_packed(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    with log.open("wb") as file:
        file.truncate(300 * 2**20)
    with pytest.raises(DataError, match=r"would be refused: its \d+ bytes would unpack to 314572\d+, .*; shorten logs"):
        write_pack(tmp_path / "bomb.gpubench.zip", Index("campaign", "c"), {"jobs/j1/job.log": log})
    assert not (tmp_path / "bomb.gpubench.zip").exists()
