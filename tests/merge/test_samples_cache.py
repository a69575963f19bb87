"""With the cache, without it, with a part or a wreck of it: the table, its errors and its warnings are the same."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from campaign_builder import begin, finish, make_plan
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.merge import cache, environment
from gpubench.merge.cache import NOTHING, ParsedSamples, read_cache, write_cache
from gpubench.merge.environment import comparable, facts, is_oversubscribed
from gpubench.merge.table import Merged, merge_directory, parquet
from gpubench.spec.records import PROVENANCE, PROVENANCE_FILE, RUN_FILE, SAMPLES_FILE
from gpubench.store.campaign import Campaign
from tests.conftest import ROOT, Run

SUITE = [("message", {"size": 1024}, 4, 60e-6), ("merge", {"rows_per_worker": 2000, "frac_match": 0.3}, 3, 0.4)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several batches, and a cache for few samples too."""
    monkeypatch.setattr("gpubench.merge.table.BATCH", 4)
    monkeypatch.setattr("gpubench.merge.cache.LEAST", 1)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    campaign = begin(tmp_path / "campaign", make_plan(blocks=5, suite=SUITE))
    finish(campaign)
    return campaign


def same(one: Merged, other: Merged) -> bool:
    said = ([str(error) for error in each.errors] for each in (one, other))
    return parquet(one) == parquet(other) and next(said) == next(said) and one.warnings == other.warnings


def known(campaign: Campaign) -> ParsedSamples:
    return merge_directory(campaign.runs_dir, known=NOTHING).parsed()


def write_provenance(campaign: Campaign) -> None:
    """What every run of the campaign says of its node and its processes."""
    for path in runs(campaign):
        process = {"host": "n0", "python": "3.11.7", "ucx": {"env": {"UCX_TLS": "tcp"}, "path": str(path)}}
        node = {"host": "n0", "kernel": "6.1.0", "environment": {"LANG": "C", "HOME": str(path)}, "load": [path.name]}
        plain = {"schema": PROVENANCE, "run": path.name, "processes": [process | {"affinity": [0]}], "nodes": [node]}
        (path / PROVENANCE_FILE).write_text(json.dumps(plain))


WORDS = st.text("ab", max_size=2)
VALUES = st.one_of(st.none(), st.integers(-2, 2), WORDS, st.lists(st.integers(0, 3), max_size=2))
MAPS = st.one_of(VALUES, st.dictionaries(st.sampled_from(["env", "loaded", "path", "HOME", "LANG", "eth0"]), VALUES))
NAMES = ["host", "python", "versions", "ucx", "affinity", "network", "environment", "kernel", "load", "name"]
ENTRIES = st.one_of(VALUES, st.lists(st.one_of(VALUES, st.dictionaries(st.sampled_from(NAMES), MAPS)), max_size=3))
PROVENANCES = st.dictionaries(st.sampled_from(["processes", "nodes", "speed"]), ENTRIES)


def runs(campaign: Campaign) -> list[Path]:
    return sorted(campaign.runs_dir.iterdir())


def only(parsed: ParsedSamples, keep: set[int]) -> ParsedSamples:
    keys = [key for at, key in enumerate(parsed.keys) if at in keep]
    counts = [parsed.places[key][1] for key in keys]
    return ParsedSamples(keys, np.array(counts, dtype=np.int64), parsed.of(keys))


@settings(max_examples=40, deadline=None)
@given(keep=st.sets(st.integers(0, 9)))
def test_whichever_runs_are_known_the_table_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, keep: set[int]
) -> None:
    directory = tmp_path_factory.getbasetemp() / "many"
    if not directory.exists():
        finish(begin(directory, make_plan(blocks=5, suite=SUITE)))
    plain = merge_directory(directory / "runs")
    parsed = merge_directory(directory / "runs", known=NOTHING).parsed()
    again = merge_directory(directory / "runs", known=only(parsed, keep))
    assert same(again, plain)
    assert again.keys == set(parsed.keys)
    assert again.parsed().rows.equals(parsed.rows)


def test_known_samples_are_not_parsed_again(campaign: Campaign) -> None:
    parsed = known(campaign)
    doubled = ParsedSamples(parsed.keys, parsed.counts, parsed.rows.with_columns(pl.col("wall_s") * 2))
    plain, again = (merge_directory(campaign.runs_dir, known=one).frame["wall_s"] for one in (None, doubled))
    assert again.to_list() == [2 * value for value in plain]


def test_runs_that_were_read_line_by_line_are_not_kept(campaign: Campaign) -> None:
    before = merge_directory(campaign.runs_dir, known=NOTHING)
    samples = runs(campaign)[0] / SAMPLES_FILE
    samples.write_text(samples.read_text().replace("\n", "\n\n", 1))
    after = merge_directory(campaign.runs_dir, known=NOTHING)
    assert len(before.keys) == 10
    assert after.keys < before.keys
    assert set(after.parsed().keys) == after.keys


def test_what_is_written_is_read(campaign: Campaign) -> None:
    parsed = known(campaign)
    write_cache(campaign.cache, parsed)
    found = read_cache(campaign.cache)
    assert (list(found.keys), found.counts.tolist()) == (list(parsed.keys), parsed.counts.tolist())
    assert found.rows.equals(parsed.rows)


def test_few_samples_get_no_file(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpubench.merge.cache.LEAST", 10_000)
    write_cache(campaign.cache, known(campaign))
    assert not campaign.cache.exists()


def test_an_edited_file_of_the_same_size_and_time_is_read_anew(campaign: Campaign) -> None:
    parsed, first = known(campaign), merge_directory(campaign.runs_dir)
    samples = runs(campaign)[3] / SAMPLES_FILE
    before, text = samples.stat(), samples.read_text()
    samples.write_text(text.replace('"bytes":1', '"bytes":2', 1))
    os.utime(samples, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = samples.stat()
    assert samples.read_text() != text
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    plain = merge_directory(campaign.runs_dir)
    assert same(merge_directory(campaign.runs_dir, known=parsed), plain)
    assert not same(plain, first)


def test_a_record_that_calls_its_workload_otherwise_is_not_served_with_the_old_name(campaign: Campaign) -> None:
    parsed = known(campaign)
    record = runs(campaign)[0] / RUN_FILE
    record.write_text(record.read_text().replace('"message"', '"massage"'))
    plain = merge_directory(campaign.runs_dir)
    assert plain.errors
    assert same(merge_directory(campaign.runs_dir, known=parsed), plain)


def test_a_newer_attempt_takes_the_place_of_an_older_one(campaign: Campaign) -> None:
    parsed = known(campaign)
    old = runs(campaign)[2]
    new = old.with_name(f"{old.name.rpartition('-')[0]}-2")
    shutil.copytree(old, new)
    (new / RUN_FILE).write_text(json.dumps(json.loads((new / RUN_FILE).read_text()) | {"attempt": 2}))
    (new / SAMPLES_FILE).write_text((old / SAMPLES_FILE).read_text().replace('"wall_s":', '"wall_s":1', 3))
    shutil.rmtree(old)
    plain = merge_directory(campaign.runs_dir)
    again = merge_directory(campaign.runs_dir, known=parsed)
    assert same(again, plain)
    assert set(again.frame["attempt"]) == {1, 2}
    assert len(again.keys - set(parsed.keys)) == 1  # and its predecessor is no longer kept
    assert len(again.keys) == len(parsed.keys)


def test_a_damaged_run_beside_known_ones_is_named_as_without_a_cache(campaign: Campaign) -> None:
    parsed = known(campaign)
    samples = runs(campaign)[5] / SAMPLES_FILE
    samples.write_text(samples.read_text()[:-9])
    plain = merge_directory(campaign.runs_dir)
    assert plain.warnings
    assert same(merge_directory(campaign.runs_dir, known=parsed), plain)


def test_a_cache_whose_parts_are_said_to_have_other_sizes_is_none(tmp_path: Path) -> None:
    path = tmp_path / "samples.cache"
    finish(begin(tmp_path, make_plan(blocks=2, suite=SUITE)))
    write_cache(path, merge_directory(tmp_path / "runs", known=NOTHING).parsed())
    head, rest = path.read_bytes().split(b"\n", 1)
    sizes = json.loads(head)["sizes"]
    said = [*sizes[:-1], sizes[-1] + 1]  # a slice that ends behind the file's end is as long as before
    path.write_bytes(head.replace(json.dumps(sizes).encode(), json.dumps(said).encode()) + b"\n" + rest)
    assert read_cache(path) is NOTHING


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_no_cache(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    directory = tmp_path_factory.getbasetemp() / "damaged"
    path = directory / "samples.cache"
    if not directory.exists():
        finish(begin(directory, make_plan(blocks=2, suite=SUITE)))
        parsed = merge_directory(directory / "runs", known=NOTHING).parsed()
        environments = {"a" * 64: {"processes": [], "nodes": [{"host": "n1"}]}}
        write_cache(path, dataclasses.replace(parsed, environments=environments))
        assert read_cache(path).environments == environments
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    torn = whole[:at] if data.draw(st.booleans()) else whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    (directory / "torn.cache").write_bytes(torn)
    assert read_cache(directory / "torn.cache") is NOTHING


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"[1]\n", b'{"index_bytes": -1}\n', b"\xff\xfe\n"])
def test_any_other_file_is_no_cache(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "samples.cache").write_bytes(content)
    assert read_cache(tmp_path / "samples.cache") is NOTHING
    assert read_cache(tmp_path) is NOTHING
    assert read_cache(tmp_path / "missing") is NOTHING


def test_the_file_of_another_gpubench_is_no_cache(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cache(campaign.cache, known(campaign))
    assert read_cache(campaign.cache).keys
    monkeypatch.setattr(cache, "__version__", "0.0.0")
    assert read_cache(campaign.cache) is NOTHING


def judged(gpubench: Run, campaign: Campaign) -> tuple[str, bytes]:
    """What compare says, and the verdicts with their numbers."""
    return gpubench("compare", campaign.directory, "--fail-on", "regression").stdout, campaign.verdicts.read_bytes()


def test_environments_that_are_known_are_not_parsed_again(
    gpubench: Run, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_provenance(campaign)
    first = judged(gpubench, campaign)
    assert len(read_cache(campaign.cache).environments) == 10
    parsed: list[bytes] = []
    whole = environment.parse_provenance
    monkeypatch.setattr(environment, "parse_provenance", lambda data: (parsed.append(data), whole(data))[1])
    assert judged(gpubench, campaign) == first
    assert parsed == []
    changed = runs(campaign)[0] / PROVENANCE_FILE
    changed.write_text(changed.read_text() + "\n")
    assert judged(gpubench, campaign) == first
    assert parsed == [changed.read_bytes()]


def test_an_edited_provenance_of_the_same_size_and_time_is_read_anew(gpubench: Run, campaign: Campaign) -> None:
    write_provenance(campaign)
    first = judged(gpubench, campaign)
    record = json.loads((runs(campaign)[0] / RUN_FILE).read_text())
    for path in runs(campaign):
        if json.loads((path / RUN_FILE).read_text())["variant"] == record["variant"]:
            provenance = path / PROVENANCE_FILE
            before, text = provenance.stat(), provenance.read_text()
            provenance.write_text(text.replace("6.1.0", "6.2.0"))
            os.utime(provenance, ns=(before.st_atime_ns, before.st_mtime_ns))
            assert provenance.stat().st_size == before.st_size
    warm = judged(gpubench, campaign)
    assert "kernel" in warm[0]
    assert warm != first
    campaign.cache.unlink()
    assert judged(gpubench, campaign) == warm


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"processes": 1}', b'{"nodes": [1], "processes": [{}]}'])
def test_damaged_provenance_says_the_same_with_and_without_a_cache(
    gpubench: Run, campaign: Campaign, damage: bytes
) -> None:
    write_provenance(campaign)
    judged(gpubench, campaign)
    (runs(campaign)[0] / PROVENANCE_FILE).write_bytes(damage)
    (runs(campaign)[1] / PROVENANCE_FILE).unlink()
    warm = judged(gpubench, campaign)
    again = judged(gpubench, campaign)
    campaign.cache.unlink()
    assert judged(gpubench, campaign) == warm == again


@settings(max_examples=60, deadline=None)
@given(provenance=PROVENANCES)
def test_the_comparable_part_says_what_the_whole_says(provenance: dict[str, object]) -> None:
    part = comparable(provenance)
    if part is not None:
        assert facts(part) == facts(provenance)
        assert is_oversubscribed(part, "ucx") == is_oversubscribed(provenance, "ucx")


WRITER = """
import resource, signal, sys
from pathlib import Path
from gpubench.merge import cache, table
cache.LEAST = 1
directory = Path(sys.argv[1])
parsed = table.merge_directory(directory / "runs", known=cache.NOTHING).parsed()
signal.signal(signal.SIGXFSZ, signal.SIG_DFL if sys.argv[2] == "killed" else signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
cache.write_cache(directory / "samples.cache", parsed)
print("on we go")
"""


@pytest.mark.parametrize(("what", "code"), [("killed", -signal.SIGXFSZ), ("full disk", 0)])
def test_a_writer_that_dies_or_finds_no_room_leaves_the_old_file(campaign: Campaign, what: str, code: int) -> None:
    write_cache(campaign.cache, only(known(campaign), {0, 1}))
    before = campaign.cache.read_bytes()
    words = [sys.executable, "-c", WRITER, str(campaign.directory), what]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert campaign.cache.read_bytes() == before
    write_cache(campaign.cache, known(campaign))  # the next one clears away what was left
    assert sorted(campaign.directory.glob(".samples.cache*")) == []
    assert len(read_cache(campaign.cache).keys) == 10


def test_where_nothing_may_be_written_nothing_is_said(campaign: Campaign, capfd: pytest.CaptureFixture[str]) -> None:
    write_cache(Path("/proc/samples.cache"), known(campaign))
    write_cache(campaign.directory / "missing" / "samples.cache", known(campaign))
    assert capfd.readouterr() == ("", "")
    assert not (campaign.directory / "missing").exists()


def test_readers_and_writers_at_once_see_one_of_the_whole_files(campaign: Campaign) -> None:
    several = [only(known(campaign), set(range(count))) for count in (3, 7)]
    write_cache(campaign.cache, several[0])
    done = threading.Event()

    def write(parsed: ParsedSamples) -> None:
        while not done.is_set():
            write_cache(campaign.cache, parsed)

    writers = [threading.Thread(target=write, args=(one,)) for one in several]
    for writer in writers:
        writer.start()
    try:
        seen = {len(read_cache(campaign.cache).keys) for _ in range(200)}
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert seen <= {3, 7}


def test_compare_writes_it_uses_it_and_needs_it_never(gpubench: Run, campaign: Campaign) -> None:
    answers = []
    for step in ("cold", "warm", "damaged", "removed"):
        if step == "damaged":
            campaign.cache.write_bytes(campaign.cache.read_bytes()[:-1])
        elif step == "removed":
            campaign.cache.unlink()
        done = gpubench("compare", campaign.directory, "--json")
        answers.append((done.stdout, done.stderr, campaign.results.read_bytes(), campaign.verdicts.read_bytes()))
        assert len(read_cache(campaign.cache).keys) == 10
    assert answers == answers[:1] * 4


def test_packs_and_fsck_pass_it_over(gpubench: Run, campaign: Campaign, tmp_path: Path) -> None:
    gpubench("compare", campaign.directory)
    gpubench("results", "fsck", campaign.directory)
    with_it, without = tmp_path / "with.gpubench.zip", tmp_path / "without.gpubench.zip"
    assert campaign.cache.exists()
    gpubench("results", "pack", campaign.directory, "--out", with_it)
    campaign.cache.unlink()
    gpubench("results", "pack", campaign.directory, "--out", without)
    assert with_it.read_bytes() == without.read_bytes()
