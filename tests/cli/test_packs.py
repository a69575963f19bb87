"""A campaign or an import as one file: every reader takes it, none changes it, and no edited one is believed."""

from __future__ import annotations

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
    assert "no findings" in run("results", "fsck", campaign).stdout
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
    assert "no findings" in run("results", "fsck", PACK).stdout
    assert "in the campaign that was packed" in str(of_pack.exception)


def test_a_pack_is_not_watched(packed: Path) -> None:
    error = refusal("status", PACK, "--watch")
    assert (error.exit_code, error.what) == (2, f"--watch: {packed.name} is a pack, nothing in it changes")


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
    """The pack again with other entries."""
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


def link(name: str, kind: int = stat.S_IFLNK) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (kind | 0o777) << 16
    return info


def squeezed(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_BZIP2
    return info


def edits() -> Iterator[tuple[str, Change, str]]:
    def renamed(name: str) -> Change:
        return lambda files, _: files.update({name: files.pop("node.pyz")})

    yield "outside", renamed("../node.pyz"), "leads out of"
    yield "deep outside", renamed("a/../../node.pyz"), "leads out of"
    yield "absolute", renamed("/tmp/node.pyz"), "leads out of"
    yield "below a file", renamed("plan.json/node.pyz"), "below a file"
    yield "long name", renamed("runs/" + "x" * 256), "too long"
    yield "capitals", renamed("PLAN.json"), "differ only in capitals"
    yield "bomb", lambda files, _: files.update({"jobs/j001-n1/job.log": bytes(320 * 2**20)}), "would unpack to"
    yield "link", lambda _, more: more.append(link("runs/link")), "no plain file"
    yield "device", lambda _, more: more.append(link("runs/device", stat.S_IFCHR)), "no plain file"
    yield "bzip2", lambda _, more: more.append(squeezed("runs/x")), "compressed in another way"
    yield "no schema", lambda files, _: files.update({INDEX: b'{"what": "campaign", "name": "x"}'}), "no pack, not"
    yield "folder", lambda _, more: more.append(zipfile.ZipInfo("runs/folder/")), "no plain file"
    yield "no index", lambda files, _: files.pop(INDEX), "no pack of gpubench"
    yield "deep index", lambda files, _: files.update({INDEX: b"[" * 100_000}), "no pack of gpubench"
    yield "torn index", lambda files, _: files.update({INDEX: b'{"schema'}), "no pack of gpubench"
    yield "list", lambda files, _: files.update({INDEX: b"[1]"}), "no pack of gpubench"
    yield "version", lambda files, _: files.update({INDEX: files[INDEX].replace(b"pack/1", b"pack/9")}), "not gpubench"


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
    assert list(into.iterdir()) == []
    assert re.search(words, run("results", "fsck", edited).stdout)


def test_bytes_that_were_changed_are_told_by_the_archive_or_by_the_record(golden_pack: Path, tmp_path: Path) -> None:
    edited = rewritten(golden_pack, lambda files, _: files.update({"node.pyz": b"another"}))
    done = run("results", "fsck", edited)
    assert (done.exit_code, "it ran another node half than node.pyz" in done.stdout) == (3, True)
    data = golden_pack.read_bytes()
    with zipfile.ZipFile(golden_pack) as archive:
        at = archive.getinfo("node.pyz").header_offset + 100
    edited.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    (tmp_path / "into").mkdir()
    with pytest.raises(DataError, match=r"node\.pyz can't be unpacked"):
        unpack(edited, tmp_path / "into")
    edited.write_bytes(data[:-30])
    assert "cut off" in run("results", "fsck", edited).stdout


def test_only_what_a_campaign_consists_of_is_unpacked(golden_pack: Path, tmp_path: Path) -> None:
    more = rewritten(golden_pack, lambda files, _: files.update({"results.parquet": b"PAR1", "x": b""}))
    (tmp_path / "into").mkdir()
    unpack(more, tmp_path / "into")
    assert "plan.json" in (there := {path.name for path in (tmp_path / "into").iterdir()})
    assert not {"results.parquet", "x"} & there


def test_a_name_that_stands_twice_is_refused(golden_pack: Path, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    with zipfile.ZipFile(golden_pack, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("plan.json", "{}")
    with pytest.raises(DataError, match="two of its files have one name"):
        unpack(golden_pack, tmp_path / "into")


@pytest.fixture
def golden_pack(tmp_path: Path) -> Path:
    from gpubench.store.packs import Index, write_pack

    folder = GOLDEN / "campaign"
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    out = tmp_path / PACK
    write_pack(out, Index("campaign", "tiny"), files)
    return out
