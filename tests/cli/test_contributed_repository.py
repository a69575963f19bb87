"""A repository of three contributed packs of two sites: what the commands do with them, and with malicious ones."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpubench.plan.block_design import run_id
from gpubench.results.packing import pack
from gpubench.store.campaign import Campaign
from tests.conftest import ROOT, Run

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1" / "campaign"
ZEROS = 320 * 2**20
"""Bytes that compress to so few that no honest pack could hold them."""
Files = dict[str, bytes]
Edit = Callable[[Files, list[zipfile.ZipInfo]], object]


def moved(directory: Path, site: str, campaign: str, date: str) -> None:
    """The released campaign as if it had run elsewhere on another day: with run ids and hashes that fit."""
    old_campaign = Campaign.open(directory)
    plan = old_campaign.plan
    new = {
        run.run: run_id(campaign, block.block, job.place, run.variant, run.workloads)
        for job, block, run in old_campaign.rows()
    }
    new |= {plan.campaign: campaign, plan.created_at[:10]: date, '"site": "local"': f'"site": "{site}"'}
    new |= {'"site":"local"': f'"site":"{site}"', '"site": {\n  "name": "local"': f'"site": {{\n  "name": "{site}"'}
    for path in [path for path in directory.rglob("*") if path.suffix in (".json", ".jsonl", ".sh")]:
        text = path.read_text()
        for old, replacement in new.items():
            text = text.replace(old, replacement)
        path.write_text(text)
    for path in [*directory.glob("runs/*"), *directory.glob("jobs/*/specs/*")]:
        name = path.name
        for old, replacement in new.items():
            name = name.replace(old, replacement)
        path.rename(path.with_name(name))
    for run in directory.glob("runs/*"):
        record = json.loads((run / "run.json").read_text())
        record["files"] = {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in record["files"]}
        (run / "run.json").write_text(json.dumps(record))


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of three campaigns: two of one site on different days, one of another site; they are only read."""
    made, folder = [], tmp_path_factory.mktemp("packs")
    for site, date in (("local", ""), ("local", "2026-11-23"), ("lab", "2026-11-24")):
        name = f"{site}-tiny-{(date or '2026-11-21').replace('-', '')}T222156Z"
        copy = Path(shutil.copytree(GOLDEN, folder / "campaigns" / name))
        for job in copy.glob("jobs/*"):
            (job / "local.json").write_text(json.dumps({"pid": 1, "started": "0", "code": 0}))
        if date:
            moved(copy, site, name, date)
        made.append(folder / f"{name}.gpubench.zip")
        pack(copy, made[-1])
    return made


@pytest.fixture
def repository(tmp_path: Path, gpubench: Run, packs: list[Path]) -> Path:
    directory = tmp_path / "repository"
    directory.mkdir()
    for source in packs:
        done = gpubench("results", "publish", source, "--to", directory)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return directory


def content(directory: Path) -> Files:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_three_packs_are_checked_and_read_per_site(repository: Path, gpubench: Run) -> None:
    checked = gpubench("results", "validate", repository)
    assert checked.returncode == 0, checked.stdout
    assert "3 packs, nothing wrong" in checked.stdout
    told = json.loads(gpubench("trend", repository, "--json").stdout)
    assert sorted(one["name"] for one in told["sources"]) == [
        "lab-tiny-20261124T222156Z",
        "local-tiny-20261121T222156Z",
        "local-tiny-20261123T222156Z",
    ]
    sites = {one["site"] for one in told["series"]}
    assert sites == {"lab", "local"}, "figures of two sites may never share a series"


def put(files: Files, name: str, data: bytes) -> None:
    files[name] = data


def replaced(files: Files, suffix: str, old: bytes, new: bytes) -> None:
    for name in [name for name in files if name.endswith(suffix)]:
        put(files, name, files[name].replace(old, new))


def special(name: str, kind: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (kind | 0o777) << 16
    return info


def archive(method: int = zipfile.ZIP_DEFLATED, size: int = 1) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made, made.open("worker.log", "w", force_zip64=True) as log:
        for _ in range(max(1, size >> 20)):
            log.write(bytes(min(size, 2**20)))
    return buffer.getvalue()


def changed_header(data: bytes, field: int, value: bytes) -> bytes:
    """Logs whose two headers of the first file have other bytes, ``field`` bytes from where its version stands."""
    for mark, version in ((b"PK\x03\x04", 4), (b"PK\x01\x02", 6)):
        at = data.index(mark) + version + field
        data = data[:at] + value + data[at + len(value) :]
    return data


def logs(files: Files, data: bytes) -> None:
    """Other logs of one run, with hashes that fit everywhere."""
    name = next(name for name in sorted(files) if name.endswith("logs.zip"))
    put(files, name, data)
    record = f"{name.rpartition('/')[0]}/run.json"
    plain = json.loads(files[record])
    plain["files"]["logs.zip"] = hashlib.sha256(data).hexdigest()
    put(files, record, json.dumps(plain).encode())


def malice() -> Iterator[tuple[str, Edit, str]]:
    """Names and kinds of files are those of test_packs.py; two of them show that this command looks, too."""
    yield "outside", lambda files, _: put(files, "../../evil", b"x"), "leads out of a directory"
    yield "link", lambda _, more: more.append(special("runs/link", stat.S_IFLNK)), "no plain file"
    yield "bomb of logs", lambda files, _: logs(files, archive(size=ZEROS)), "would unpack to"
    yield "encrypted logs", lambda files, _: logs(files, changed_header(archive(), 2, b"\x01")), "can't be unpacked"
    yield "strange logs", lambda files, _: logs(files, changed_header(archive(), 4, b"\x63")), "can't be unpacked"
    yield "torn archive", lambda files, _: put(files, "jobs/j001-n1/x.zip", archive()[:50]), "can't be unpacked"
    yield "samples", lambda files, _: replaced(files, "samples.jsonl", b'"wall_s":', b'"wall_s":1'), "samples.jsonl"
    yield "campaign", lambda files, _: replaced(files, "plan.json", b"T222156Z", b"T222157Z"), "run ids aren't the hash"
    yield "site outside", lambda files, _: replaced(files, "plan.json", b'"name": "local"', b'"name": "../x"'), "site"
    yield "secret", lambda files, _: put(files, "jobs/j001-n1/x.pyz", b"HF_TOKEN=hf_abcdefgh1234\n"), "a password"


@pytest.mark.parametrize(("edit", "said"), [pytest.param(*rest, id=name) for name, *rest in malice()])
def test_a_malicious_pack_is_refused_and_nothing_is_written(
    tmp_path: Path, gpubench: Run, packs: list[Path], edit: Edit, said: str
) -> None:
    with zipfile.ZipFile(packs[0]) as source:
        files, more = {name: source.read(name) for name in source.namelist()}, list[zipfile.ZipInfo]()
    edit(files, more)
    evil = tmp_path / "evil.gpubench.zip"
    with zipfile.ZipFile(evil, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in files.items():
            target.writestr(name, data)
    with zipfile.ZipFile(evil, "a") as target:
        for info in more:
            target.writestr(info, "/etc/passwd")
    directory = tmp_path / "repository"
    directory.mkdir()
    assert gpubench("results", "publish", packs[1], "--to", directory).returncode == 0
    before, around = content(directory), {*tmp_path.iterdir()}
    done = gpubench("results", "publish", evil, "--to", directory)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1), done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    assert content(directory) == before
    assert {*tmp_path.iterdir()} == around


def test_an_index_that_leads_out_of_the_repository_is_refused(
    repository: Path, gpubench: Run, packs: list[Path]
) -> None:
    shutil.copy(packs[0], repository / "outside.gpubench.zip")
    index = repository / "contributions" / "index.json"
    plain = json.loads(index.read_text())
    (other,) = [one for one in plain["packs"] if "20261121" in one["pack"]]
    sound = index.read_text()
    index.write_text(json.dumps({**plain, "packs": [*plain["packs"], {**other, "pack": "../outside.gpubench.zip"}]}))
    done = gpubench("results", "validate", repository)
    assert done.returncode == 3
    assert "../outside.gpubench.zip: missing, although the index names it" in done.stdout
    index.write_text(json.dumps({**plain, "packs": [*plain["packs"], {**other, "runs": 99}]}))
    done = gpubench("results", "validate", repository)
    assert (done.returncode, "it names a pack twice" in done.stderr) == (3, True)
    index.write_text(sound)
    assert gpubench("results", "validate", repository).returncode == 0


@pytest.mark.parametrize("where", ["contributions", "contributions/local"])
def test_a_link_in_the_repository_is_never_followed(
    tmp_path: Path, gpubench: Run, packs: list[Path], where: str
) -> None:
    directory, elsewhere = tmp_path / "repository", tmp_path / "elsewhere"
    (directory / where).parent.mkdir(parents=True, exist_ok=True)
    elsewhere.mkdir()
    (directory / where).symlink_to(elsewhere)
    done = gpubench("results", "publish", packs[0], "--to", directory)
    assert (done.returncode, "is a link" in done.stderr) == (3, True), done.stderr
    assert list(elsewhere.iterdir()) == []
    done = gpubench("results", "validate", directory)
    assert (done.returncode, "a link" in done.stdout + done.stderr) == (3, True)
