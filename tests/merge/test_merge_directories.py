"""However the directories of the same runs lie on disk, and whoever writes there meanwhile, the table is the same."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from campaign_builder import begin, finish, make_plan
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.results.merge.table import parquet
from gpubench.store.campaign import Campaign
from tests.merging import merge, read_runs

SUITE = [("message", {"size": 1024}, 4, 60e-6), ("merge", {"rows_per_worker": 2000, "frac_match": 0.3}, 3, 0.4)]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    campaign = begin(tmp_path_factory.mktemp("whole") / "campaign", make_plan(blocks=3, suite=SUITE))
    finish(campaign)
    return campaign


@pytest.fixture(scope="module")
def table(campaign: Campaign) -> bytes:
    return parquet(merge(read_runs(campaign.runs_dir).runs).frame)


def lay(run: Path, runs: Path, name: str) -> None:
    """The run's directory once more, without copying its bytes."""
    (runs / name).mkdir(parents=True)
    for file in run.iterdir():
        os.link(file, runs / name / file.name)


@settings(max_examples=15)
@given(data=st.data())
def test_the_order_in_which_directories_were_made_changes_no_byte(
    campaign: Campaign, table: bytes, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory(dir=campaign.directory.parent) as scratch:
        runs = Path(scratch) / "runs"
        for run in data.draw(st.permutations(sorted(campaign.runs_dir.iterdir()))):
            lay(run, runs, run.name)
        assert parquet(merge(read_runs(runs).runs).frame) == table


@settings(max_examples=15)
@given(data=st.data())
def test_a_copy_of_a_run_under_another_name_is_named_and_changes_no_byte(
    campaign: Campaign, table: bytes, data: st.DataObject
) -> None:
    originals = sorted(campaign.runs_dir.iterdir())
    copied = data.draw(st.lists(st.sampled_from(originals), min_size=1, unique=True))
    with tempfile.TemporaryDirectory(dir=campaign.directory.parent) as scratch:
        runs = Path(scratch) / "runs"
        for run in originals:
            lay(run, runs, run.name)
        for run in copied:
            other = data.draw(st.sampled_from([f"{run.name.rpartition('-')[0]}-2", f"copy of {run.name}"]))
            lay(run, runs, other)
        read = read_runs(runs)
        assert [str(error).partition(": its record is that of run ")[1] != "" for error in read.errors] == [
            True for _ in copied
        ]
        assert parquet(merge(read.runs).frame) == table


# As a node does it, line by line and the record last. A step begins with a line on stdin and ends with one on stdout.
WRITER = """
import sys
from pathlib import Path
from gpubench.node.spec.plain import parse_lines
from gpubench.store.rundirs import read_provenance, read_record
from gpubench.node.writer.run_dir import append_sample, claim, finish, write_provenance

source, target = map(Path, sys.argv[1:])

def steps():
    for run in sorted(source.iterdir()):
        record = read_record(run)
        directory = claim(target, record.run)
        yield
        for line in parse_lines((run / "samples.jsonl").read_text()):
            append_sample(directory, line)
            yield
        write_provenance(directory, read_provenance(run))
        yield
        finish(directory, record)
        yield

for _ in steps():
    print("done", flush=True)
    sys.stdin.readline()
"""


def test_a_merge_while_runs_are_being_written_has_whole_runs_only_and_never_complains(
    campaign: Campaign, table: bytes, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    per_run = sum(one.reps + one.warmup for one in campaign.plan.workloads)
    seen = []
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(campaign.runs_dir), str(runs)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        while writer.stdout.readline() == "done\n":
            writer.stdin.write("\n")  # the next step goes on while we look
            read = read_runs(runs)
            merged = merge(read.runs)
            assert (read.errors, merged.errors) == ((), ())
            assert set(merged.frame.group_by("run").len()["len"]) <= {per_run}
            seen.append(merged.frame["run"].n_unique())
    assert writer.returncode == 0
    assert seen == sorted(seen), "a run that was whole stays so"
    assert {1, 2, 3, 4, 5} <= set(seen)
    assert parquet(merge(read_runs(runs).runs).frame) == table
