"""A campaign or an import as one file: every reader takes it, none changes it, and no edited one is believed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpubench.errors import DataError, GpubenchError, IncompleteError
from gpubench.schedulers import local
from gpubench.store.packs import INDEX, unpack
from tests.conftest import ROOT
from tests.in_process import invoked as run

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1"
PACK = "tiny.gpubench.zip"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def refusal(*words: str | Path) -> GpubenchError:
    error = run(*words).exception
    assert isinstance(error, GpubenchError)
    return error


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(GOLDEN / "campaign", tmp_path / "far" / "tiny"))
    for job in copy.glob("jobs/*"):
        local._remember(job, 1, 0)
    return copy


@pytest.fixture
def packed(campaign: Path, tmp_path: Path) -> Path:
    assert run("results", "pack", campaign).exit_code == 0
    return tmp_path / PACK


def test_the_same_content_gives_the_same_bytes_wherever_it_lies_and_whatever_was_derived(
    packed: Path, campaign: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(campaign, tmp_path / "other", copy_function=shutil.copyfile))
    assert run("compare", copy).exit_code == 21
    assert run("results", "pack", copy, "--out", "again.gpubench.zip").exit_code == 0
    assert (tmp_path / "again.gpubench.zip").read_bytes() == packed.read_bytes()
    with zipfile.ZipFile(packed) as archive:
        assert {info.date_time[0] for info in archive.infolist()} == {1980}
        assert "results.parquet" not in archive.namelist()


def test_tables_that_a_workload_made_are_no_finding_and_not_packed(campaign: Path, tmp_path: Path) -> None:
    (campaign / "data" / "pdsh-0").mkdir(parents=True)
    (campaign / "data" / "pdsh-0" / "part.parquet").write_bytes(b"PAR1")
    assert "foreign" not in run("results", "fsck", campaign).stdout
    assert run("results", "pack", campaign).exit_code == 0
    with zipfile.ZipFile(tmp_path / PACK) as archive:
        assert not [name for name in archive.namelist() if name.startswith("data")]


READERS = [
    ["compare", PACK],
    ["compare", PACK, "--json"],
    ["compare", PACK, "--markdown"],
    ["report", PACK, "--markdown"],
    *(["report", PACK, "--only", only] for only in ("verdicts", "scaling", "links", "coverage", "changes")),
    ["status", PACK],
    ["trend", PACK],
    ["trend", PACK, "--only", "changes"],
    ["diff", "a", "b", PACK],
    ["results", "export", "csv", PACK, "out.csv"],
    ["plan", PACK],
]


@pytest.mark.parametrize("words", READERS, ids=lambda words: "-".join(words[:1] + words[2:]))
def test_a_reader_says_of_the_pack_what_it_says_of_the_directory(
    words: list[str], packed: Path, campaign: Path, tmp_path: Path
) -> None:
    of_pack = run(*words)
    of_directory = run(*(str(campaign) if word == PACK else word for word in words))
    assert of_pack.exit_code == of_directory.exit_code
    assert of_pack.stdout.replace(PACK, "X") == of_directory.stdout.replace(str(campaign), "X")
    there = {path.name for path in tmp_path.iterdir()} - {"state", "out.csv"}
    assert there == {"far", PACK}, "nothing may be written beside the pack"


def test_a_report_ends_with_what_to_type_next_but_not_that_of_a_pack(campaign: Path, packed: Path) -> None:
    last = run("report", campaign).stdout.partition("\n\n")[2].splitlines()
    assert re.fullmatch(rf"gpubench bench --campaign {campaign} --blocks \+\d+ +# about .+", last[0]), last
    assert "\n\n" not in run("report", packed).stdout


def test_reports_of_packs_stand_beside_them(packed: Path, tmp_path: Path) -> None:
    before = packed.read_bytes()
    assert "report: tiny.report.html" in run("report", PACK).stdout
    assert (
        "24 samples in tiny.results.parquet" in run("results", "export", "parquet", PACK, "tiny.results.parquet").stdout
    )
    assert run("results", "pack", GOLDEN / "import", "--out", "old.gpubench.zip").exit_code == 0
    assert "report: old.report.html" in run("report", "old.gpubench.zip").stdout
    made = ["far", "old.report.html", "old.report.md", "tiny.report.html", "tiny.report.md", "tiny.results.parquet"]
    there = {path.name for path in tmp_path.iterdir()} - {"state", PACK, "old.gpubench.zip"}
    assert sorted(there) == made
    assert packed.read_bytes() == before


def test_history_finds_packs_in_a_directory_and_counts_no_campaign_twice(
    packed: Path, campaign: Path, tmp_path: Path
) -> None:
    assert run("results", "pack", GOLDEN / "import", "--out", "old.gpubench.zip").exit_code == 0
    plain = json.loads(run("trend", tmp_path, "--json").stdout)
    assert json.dumps(plain).count('"import"') >= 1
    both = run("trend", campaign, packed)
    assert "is here already: left out" in both.stderr


@pytest.mark.parametrize(
    "words", ["submit", "submit --campaign", "cancel", "plan --out", "bench --campaign", "bench --blocks +2 --campaign"]
)
def test_what_changes_a_campaign_refuses_a_pack_in_one_line(words: str, packed: Path) -> None:
    error = refusal(*words.split(), PACK)
    assert (error.exit_code, str(error).count("\n")) == (2, 0)
    assert "a pack is read, and never changed" in str(error)
    assert f"unzip {PACK}" in str(error)


def test_a_pack_of_an_unfinished_campaign_says_what_is_missing(campaign: Path) -> None:
    next(campaign.glob("runs/*-1/run.json")).unlink()
    for job in campaign.glob("jobs/*"):
        local._remember(job, 1, 1)
    done = run("results", "pack", campaign)
    assert (done.exit_code, "not in it: block" in done.stderr) == (0, True)
    of_pack, of_directory = run("status", PACK), run("status", campaign)
    assert [type(one.exception) for one in (of_pack, of_directory)] == [IncompleteError, IncompleteError]
    lost = [line for line in of_directory.stdout.splitlines() if ": lost: " in line]
    assert lost
    assert lost == [line for line in of_pack.stdout.splitlines() if ": lost: " in line]
    assert "1 planned run is missing, the first: block" in run("results", "fsck", PACK).stdout
    assert "in the campaign that was packed" in str(of_pack.exception)


def test_a_campaign_that_runs_is_not_packed_nor_links_nor_over_other_files(campaign: Path, tmp_path: Path) -> None:
    (tmp_path / PACK).write_text("my thesis")
    assert "is no pack" in str(refusal("results", "pack", campaign))
    assert (tmp_path / PACK).read_text() == "my thesis"
    assert run("results", "pack", GOLDEN / "import", "--out", "other.zip").exit_code == 0
    before = (tmp_path / "other.zip").read_bytes()
    assert "is the pack of" in str(refusal("results", "pack", campaign, "--out", "other.zip"))
    assert (tmp_path / "other.zip").read_bytes() == before
    assert "is inside the directory" in str(refusal("results", "pack", campaign, "--out", campaign / "x.zip"))
    (campaign / "notes").symlink_to("/etc/hostname")
    assert "is a link" in str(refusal("results", "pack", campaign, "--out", "y.zip"))
    (campaign / "notes").unlink()
    next(campaign.glob("runs/*-1/run.json")).unlink()
    for job in campaign.glob("jobs/*"):
        local._remember(job, os.getpid(), None)
    assert "is still running" in str(refusal("results", "pack", campaign, "--out", "y.zip"))
    assert not (tmp_path / "y.zip").exists()


Change = Callable[[dict[str, bytes], list[zipfile.ZipInfo]], object]


def rewritten(packed: Path, change: Change) -> Path:
    """The pack again with other entries, its list as it was unless ``change`` edits that too."""
    with zipfile.ZipFile(packed) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    more: list[zipfile.ZipInfo] = []
    change(files, more)
    out = packed.with_name("edited.gpubench.zip")
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        for info in more:
            archive.writestr(info, "/etc/passwd")
    return out


def listed(files: dict[str, bytes], old: str, new: str) -> None:
    """Give a file another name, in the list too."""
    files[new] = files.pop(old)
    files[INDEX] = files[INDEX].replace(json.dumps(old).encode(), json.dumps(new).encode())


def link(name: str, kind: int = stat.S_IFLNK) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (kind | 0o777) << 16
    return info


def twice_listed(index: bytes) -> bytes:
    plain = json.loads(index)
    return json.dumps({**plain, "files": plain["files"] * 2}).encode()


def sized(index: bytes, size: str) -> bytes:
    return re.sub(rb'"bytes": \d+', b'"bytes": ' + size.encode(), index)


def packed_with(folder: Path, name: str, size: int) -> Path:
    """An honest list of a dishonest campaign: one more file of zeros."""
    with zipfile.ZipFile(folder / PACK) as archive:
        files = {one: archive.read(one) for one in archive.namelist()}
    plain = json.loads(files.pop(INDEX))
    files[name] = bytes(size)
    plain["files"].append({"path": name, "bytes": size, "sha256": hashlib.sha256(files[name]).hexdigest()})
    out = folder / "more.gpubench.zip"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, data in {**files, INDEX: json.dumps(plain).encode()}.items():
            archive.writestr(one, data)
    return out


def edits() -> Iterator[tuple[str, Change, str]]:
    yield "content", lambda files, _: files.update({"plan.json": files["plan.json"] + b" "}), "longer"
    yield "byte", lambda files, _: files.update({"plan.json": files["plan.json"].replace(b"1", b"2")}), "isn't what"
    yield "bomb", lambda files, _: files.update({"node.pyz": b"\0" * 50_000_000}), "longer"
    yield "missing", lambda files, _: files.pop("node.pyz"), "it is missing"
    yield "more", lambda files, _: files.update({"extra": b""}), "doesn't name it"
    yield "outside", lambda files, _: listed(files, "node.pyz", "../node.pyz"), "leads out of"
    yield "deep outside", lambda files, _: listed(files, "node.pyz", "a/../../node.pyz"), "leads out of"
    yield "absolute", lambda files, _: listed(files, "node.pyz", "/tmp/node.pyz"), "leads out of"
    yield "below a file", lambda files, _: listed(files, "node.pyz", "plan.json/node.pyz"), "below a file"
    yield (
        "size",
        lambda files, _: files.update({INDEX: re.sub(rb'"bytes": ', b'"bytes": -', files[INDEX])}),
        "negative size",
    )
    yield "deep list", lambda files, _: files.update({INDEX: b"[" * 100_000}), "no pack of gpubench"
    yield "unlisted outside", lambda files, _: files.update({"../evil": b"x"}), "doesn't name it"
    yield "link", lambda _, more: more.append(link("runs/link")), "no plain file"
    yield "folder", lambda _, more: more.append(zipfile.ZipInfo("runs/folder/")), "no plain file"
    yield "no list", lambda files, _: files.pop(INDEX), "no pack of gpubench"
    yield "torn list", lambda files, _: files.update({INDEX: b'{"schema'}), "no pack of gpubench"
    yield "version", lambda files, _: files.update({INDEX: files[INDEX].replace(b"pack/1", b"pack/9")}), "not gpubench"
    yield "listed twice", lambda files, _: files.update({INDEX: twice_listed(files[INDEX])}), "names a file twice"
    yield "endless size", lambda files, _: files.update({INDEX: sized(files[INDEX], "1e999")}), "is damaged"
    yield (
        "huge size",
        lambda files, _: files.update({INDEX: sized(files[INDEX], "99999999999999999999")}),
        "not accepted",
    )
    yield "long name", lambda files, _: listed(files, "node.pyz", "runs/" + "x" * 256), "too long"
    yield "device", lambda _, more: more.append(link("runs/device", stat.S_IFCHR)), "no plain file"
    yield (
        "missing is text",
        lambda files, _: files.update({INDEX: files[INDEX].replace(b'"missing": []', b'"missing": "x"')}),
        "is damaged",
    )
    yield "list of lists", lambda files, _: files.update({INDEX: b'{"schema": "gpubench/pack/1"}'}), "is damaged"


@pytest.mark.parametrize(("change", "words"), [pytest.param(*rest, id=name) for name, *rest in edits()])
def test_an_edited_pack_is_refused_and_nothing_of_it_lands_outside(
    change: Change, words: str, golden_pack: Path, tmp_path: Path
) -> None:
    into = tmp_path / "deep" / "inside"
    into.mkdir(parents=True)
    edited = rewritten(golden_pack, change)
    with pytest.raises(DataError, match=words):
        unpack(edited, into)
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["inside"]
    assert not [path for path in into.rglob("*") if path.is_symlink()]


def test_a_pack_that_would_unpack_to_much_more_than_it_is_is_refused_before_a_byte_is_written(
    golden_pack: Path, tmp_path: Path
) -> None:
    bomb = packed_with(golden_pack.parent, "jobs/j001-n1/job.log", 320 * 2**20)
    (tmp_path / "into").mkdir()
    with pytest.raises(DataError, match=r"is not accepted as a pack: its \d+ bytes would unpack to"):
        unpack(bomb, tmp_path / "into")
    assert list((tmp_path / "into").iterdir()) == []
    assert "is not accepted as a pack" in run("results", "fsck", bomb).stdout


def test_only_what_a_campaign_consists_of_is_unpacked(golden_pack: Path, tmp_path: Path) -> None:
    more = packed_with(golden_pack.parent, "results.parquet", 10)
    (tmp_path / "into").mkdir()
    unpack(more, tmp_path / "into")
    assert "plan.json" in (there := {path.name for path in (tmp_path / "into").iterdir()})
    assert "results.parquet" not in there
    done = run("results", "fsck", more)
    assert f"{more}:results.parquet: foreign: no campaign has such a file" in done.stdout


def test_a_name_that_stands_twice_is_refused(golden_pack: Path, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    with zipfile.ZipFile(golden_pack, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("plan.json", "{}")
    with pytest.raises(DataError, match=r"plan\.json: it is there twice; ask whoever packed it"):
        unpack(golden_pack, tmp_path / "into")


def test_fsck_names_each_edited_file_of_a_pack(golden_pack: Path) -> None:
    def change(files: dict[str, bytes], _: list[zipfile.ZipInfo]) -> None:
        for name in ("plan.json", "node.pyz"):
            files[name] = files[name].replace(b"a", b"b")

    edited = rewritten(golden_pack, change)
    done = run("results", "fsck", edited)
    assert done.exit_code == 3
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()[:2]] == [
        f"{edited}:node.pyz",
        f"{edited}:plan.json",
    ]
    edited.write_bytes(golden_pack.read_bytes()[:-30])
    assert "cut off" in run("results", "fsck", edited).stdout


@pytest.fixture
def golden_pack(tmp_path: Path) -> Path:
    from gpubench.store.packs import Index, write_pack

    folder = GOLDEN / "campaign"
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    out = tmp_path / PACK
    write_pack(out, Index("campaign", "tiny", {}), files)
    return out
