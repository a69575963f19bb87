"""A repository of packs: what may be in it, and what is refused with its place."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import threading
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gpubench.errors import DataError, GpubenchError, UsageError
from gpubench.results import contributions
from gpubench.results.packing import pack
from gpubench.schedulers import local
from tests.conftest import ROOT, Run

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1" / "campaign"
Packed = Callable[..., Path]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    directory = tmp_path / "repository"
    directory.mkdir()
    return directory


@pytest.fixture
def packed(tmp_path: Path) -> Packed:
    """A pack of the released campaign; ``change`` gets its directory before it is packed."""

    def make(change: Callable[[Path], object] = lambda _directory: None, name: str = "mine") -> Path:
        copy = Path(shutil.copytree(GOLDEN, tmp_path / "campaigns" / name))
        for job in copy.glob("jobs/*"):
            local._remember(job, 1, 0)
            (job / "job.sh").write_text("#!/bin/bash\nGPUBENCH_TOKEN=$(cat file)\n")
        change(copy)
        out = tmp_path / f"{name}.gpubench.zip"
        pack(copy, out)
        return out

    return make


def only_pack(repository: Path) -> Path:
    (found,) = repository.rglob("*.gpubench.zip")
    return found


def test_a_sound_pack_is_published_under_its_site_and_campaign_and_the_repository_passes(
    repository: Path, packed: Packed, capsys: pytest.CaptureFixture[str]
) -> None:
    source = packed()
    contributions.publish(source, repository)
    published = only_pack(repository)
    assert published.read_bytes() == source.read_bytes()
    (entry,) = json.loads((repository / "contributions" / "index.json").read_text())["packs"]
    assert published == repository / "contributions" / entry["pack"]
    assert published.relative_to(repository / "contributions").parts[0] == entry["site"]
    assert entry["runs"] > 0
    index = (repository / "contributions" / "index.json").read_bytes()
    contributions.publish(source, repository)  # again: nothing changes
    assert (repository / "contributions" / "index.json").read_bytes() == index
    capsys.readouterr()
    contributions.validate(repository)
    assert "1 pack, nothing wrong" in capsys.readouterr().out


def append(name: str, text: str) -> Callable[[Path], object]:
    def change(directory: Path) -> None:
        for path in directory.glob(name):
            path.write_text(path.read_text() + text)

    return change


def without_nodes(directory: Path) -> None:
    for path in directory.glob("runs/*/provenance.json"):
        path.unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (append("jobs/*/job.sh", "\n# see /home/ada/notes\n"), "job.sh holds the path of a home"),
        (append("jobs/*/job.sh", "\nexport HF_TOKEN=hf_abcdefgh1234\n"), "job.sh holds what looks like a password"),
        (append("jobs/*/job.sh", "\ncurl https://me:word@host/x\n"), "job.sh holds what looks like a password"),
        (append("runs/*/samples.jsonl", "{}\n"), "samples.jsonl"),
        (without_nodes, "provenance.json"),
        (lambda directory: shutil.rmtree(directory / "runs"), "no run of it ended ok"),
    ],
    ids=["home", "token", "login", "edited", "no-provenance", "no-runs"],
)
def test_what_may_not_be_published_is_named_and_nothing_is_written(
    repository: Path,
    packed: Packed,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Path], object],
    said: str,
) -> None:
    bad = packed(change)
    with pytest.raises(
        DataError, match=r"has (a fault|\d+ faults); correct what is named above; nothing was published"
    ):
        contributions.publish(bad, repository)
    lines = capsys.readouterr().out
    assert said in lines
    assert "hf_abcdefgh1234" not in lines
    assert "word@host" not in lines
    assert list(repository.iterdir()) == []


def with_further(pack: Path, change: Callable[[dict[str, str]], object]) -> Path:
    """The pack with other texts in it."""
    out = pack.with_name("changed.gpubench.zip")
    with zipfile.ZipFile(pack) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        texts = {one: old.read(one).decode("utf-8", "surrogateescape") for one in old.namelist()}
        change(texts)
        for name, text in texts.items():
            new.writestr(name, text.encode("utf-8", "surrogateescape"))
    return out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda texts: texts.update({"notes.txt": ""}), ":notes.txt: no campaign has such a file"),
        (lambda texts: rename(texts, "HF_TOKEN=hf_abcdefgh1234"), "pack.json, name: 'name' holds a password"),
        (lambda texts: rename(texts, "/home/ada/x"), "pack.json holds the path of a home"),
    ],
    ids=["further file", "password", "home"],
)
def test_a_file_beside_a_campaign_is_refused_and_the_index_is_read_for_secrets(
    repository: Path,
    packed: Packed,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, str]], object],
    said: str,
) -> None:
    with pytest.raises(DataError):
        contributions.publish(with_further(packed(), change), repository)
    assert said in capsys.readouterr().out


def rename(texts: dict[str, str], name: str) -> None:
    texts["pack.json"] = re.sub(r'"name": "[^"]*"', f'"name": "{name}"', texts["pack.json"])


def test_a_list_of_faults_that_is_cut_says_how_many_it_leaves_out(
    repository: Path, packed: Packed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contributions, "_MOST_FAULTS", 1)

    def twice(directory: Path) -> None:
        append("jobs/*/job.sh", "\n# see /home/ada/notes\n")(directory)
        append("runs/*/samples.jsonl", "{}\n")(directory)

    bad = packed(twice)
    capsys.readouterr()  # what packing it said
    with pytest.raises(DataError, match=r"has \d+ faults") as refused:
        contributions.publish(bad, repository)
    _, more = capsys.readouterr().out.splitlines()
    assert f"has {int(more.split()[2]) + 1} faults" in str(refused.value)


def test_homes_are_published_when_that_is_said_and_the_index_says_so(
    repository: Path, packed: Packed, capsys: pytest.CaptureFixture[str]
) -> None:
    contributions.publish(packed(append("jobs/*/job.sh", "\n# see /home/ada/notes\n")), repository, homes=True)
    index = repository / "contributions" / "index.json"
    assert [entry["homes"] for entry in json.loads(index.read_text())["packs"]] == [True]
    contributions.validate(repository)
    index.write_text(index.read_text().replace('"homes": true', '"homes": false'))
    with pytest.raises(DataError):
        contributions.validate(repository)
    assert "holds the path of a home" in capsys.readouterr().out


def test_a_pack_that_is_too_large_is_not_even_unpacked(
    repository: Path, packed: Packed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = packed()
    monkeypatch.setattr(contributions, "MOST_BYTES", source.stat().st_size - 1)
    with pytest.raises(DataError, match="has a fault"):
        contributions.publish(source, repository)
    assert "are allowed" in capsys.readouterr().out


def test_a_published_pack_never_changes(repository: Path, packed: Packed) -> None:
    contributions.publish(packed(), repository)
    other = packed(append("jobs/*/job.sh", "\n# another day\n"), "other")
    before = only_pack(repository).read_bytes()
    with pytest.raises(DataError, match="exists already with other content; a published pack never changes"):
        contributions.publish(other, repository)
    assert only_pack(repository).read_bytes() == before


def swap(repository: Path, packed: Packed) -> None:
    shutil.copy(packed(append("jobs/*/job.sh", "\n# swapped\n"), "swapped"), only_pack(repository))


def tamper(repository: Path, _packed: Packed) -> None:
    """A malicious contribution: a path that leads out of the directory, in a pack that the index names."""
    with zipfile.ZipFile(only_pack(repository), "a") as archive:
        archive.writestr("../../evil", "x")


def misplace(repository: Path, _packed: Packed) -> None:
    source = only_pack(repository)
    (source.parent.parent / "elsewhere").mkdir()
    source.rename(source.parent.parent / "elsewhere" / source.name)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (swap, "the index has other facts about it"),
        (tamper, "../../evil"),
        (misplace, "belongs to contributions/"),
        (lambda repository, _packed: only_pack(repository).unlink(), "missing, although the index names it"),
        (lambda repository, _packed: (repository / "contributions" / "run.sh").write_text("x"), "run.sh: no pack"),
        (lambda repository, _packed: (repository / "contributions" / "index.json").unlink(), "the index lacks it"),
        (lambda repository, _packed: only_pack(repository).with_name("a").symlink_to("/etc"), "a link"),
    ],
)
def test_a_repository_is_refused_for_whatever_is_not_as_it_was_published(
    repository: Path,
    packed: Packed,
    capsys: pytest.CaptureFixture[str],
    harm: Callable[[Path, Packed], object],
    said: str,
) -> None:
    contributions.publish(packed(), repository)
    harm(repository, packed)
    with pytest.raises(DataError, match=r"contributions has (a fault|\d+ faults)"):
        contributions.validate(repository)
    assert said in capsys.readouterr().out


def test_directories_that_are_no_repositories_are_said(tmp_path: Path, repository: Path, packed: Packed) -> None:
    with pytest.raises(UsageError, match=r"has no contributions/; gpubench results publish PACK --to"):
        contributions.validate(repository)
    with pytest.raises(UsageError, match="is no directory"):
        contributions.publish(packed(), tmp_path / "nowhere")
    with pytest.raises(UsageError, match="is no pack; make one"):
        contributions.publish(tmp_path, repository)


def test_the_commands_publish_check_and_read(gpubench: Run, repository: Path, packed: Packed) -> None:
    source = packed()
    done = gpubench("results", "publish", source, "--to", repository)
    assert (done.returncode, done.stderr) == (0, "")
    assert "commit it together with contributions/index.json" in done.stdout
    assert gpubench("results", "validate", repository).returncode == 0
    told = gpubench("trend", repository, "--json")
    assert told.returncode == 0, told.stderr
    assert [one["name"] for one in json.loads(told.stdout)["sources"]] == ["local-tiny-20261121T222156Z"]
    bad = gpubench(
        "results", "publish", packed(append("jobs/*/job.sh", "\ncurl https://a:b@c/\n"), "bad"), "--to", repository
    )
    assert (bad.returncode, len(bad.stderr.splitlines())) == (3, 1)


def test_a_check_says_nothing_of_publishing(repository: Path, packed: Packed) -> None:
    contributions.publish(packed(), repository)
    only_pack(repository).write_bytes(b"no pack")
    with pytest.raises(DataError, match="correct or remove what is named above"):
        contributions.validate(repository)


@pytest.mark.parametrize(
    "home", ["/home/user-ada", "/home/user.ada", "/home/user_ada", "/home/runner2", "/Users/Sharedi"]
)
def test_a_home_that_begins_like_a_placeholder_is_somebody_s(
    repository: Path, packed: Packed, capsys: pytest.CaptureFixture[str], home: str
) -> None:
    source = packed(append("jobs/*/job.sh", f"\n# see {home}/notes, not /home/user. Nor /home/user/x\n"))
    with pytest.raises(DataError):
        contributions.publish(source, repository)
    said = capsys.readouterr().out
    assert "job.sh holds the path of a home; publish --allow-homes accepts it" in said


def test_a_home_in_an_archive_of_logs_is_named_with_its_file(
    repository: Path, packed: Packed, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(directory: Path) -> None:
        for run in directory.glob("runs/*"):
            with zipfile.ZipFile(run / "logs.zip", "a") as archive:
                archive.writestr("extra.log", "started in /home/ada/work\n")
            record = json.loads((run / "run.json").read_text())
            record["files"]["logs.zip"] = hashlib.sha256((run / "logs.zip").read_bytes()).hexdigest()
            (run / "run.json").write_text(json.dumps(record))

    with pytest.raises(DataError):
        contributions.publish(packed(change), repository)
    assert "logs.zip: line 1 of extra.log holds the path of a home" in capsys.readouterr().out


@pytest.mark.parametrize("file", ["contributions", "contributions/local"])
def test_a_file_where_a_directory_of_the_repository_should_be_is_said(
    repository: Path, packed: Packed, file: str
) -> None:
    source = packed()
    (repository / file).parent.mkdir(exist_ok=True)
    (repository / file).write_text("")
    with pytest.raises(GpubenchError, match=r"can't (read|write) .*contributions"):
        contributions.publish(source, repository)


def test_of_two_who_publish_at_once_neither_loses_the_other_s_entry(
    repository: Path, packed: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(directory: Path) -> None:
        plan = json.loads((directory / "plan.json").read_text())
        (directory / "plan.json").write_text(json.dumps({**plan, "margin": 0.07}))

    sources = [packed(), packed(another, "other")]
    entry, read, both = contributions._entry, contributions._read_index, threading.Barrier(2)

    def as_campaigns_of_two_names(pack: Path, *, homes: bool) -> dict[str, Any]:
        both.wait()
        return {**entry(pack, homes=homes), "pack": f"local/{pack.name}"}

    def slowly(repository: Path) -> dict[str, dict[str, Any]]:
        entries = read(repository)
        time.sleep(0.5)
        return entries

    monkeypatch.setattr(contributions, "_entry", as_campaigns_of_two_names)
    monkeypatch.setattr(contributions, "_read_index", slowly)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda source: contributions.publish(source, repository), sources))
    index = json.loads((repository / "contributions" / "index.json").read_text())
    assert [one["pack"] for one in index["packs"]] == ["local/mine.gpubench.zip", "local/other.gpubench.zip"]
