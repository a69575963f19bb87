"""Whoever writes run directories meanwhile, the table has whole runs only."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from campaign_builder import begin, finish, make_plan

from gpubench.results.merge.table import parquet, sample_table
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign

SUITE = [("message", {"size": 1024}, 4, 60e-6), ("merge", {"rows_per_worker": 2000, "frac_match": 0.3}, 3, 0.4)]


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


def test_a_merge_while_runs_are_being_written_has_whole_runs_only_and_never_complains(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "whole", make_plan(blocks=3, suite=SUITE))
    finish(campaign)
    written = Campaign.open(shutil.copytree(campaign.directory, tmp_path / "written"))
    shutil.rmtree(written.runs_dir)
    per_run = sum(one.reps + one.warmup for one in campaign.plan.workloads)
    seen = []
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(campaign.runs_dir), str(written.runs_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        while writer.stdout.readline() == "done\n":
            writer.stdin.write("\n")  # the next step goes on while we look
            outcomes = account(written, alive={job.job for job in written.jobs}).outcomes
            assert {outcome.status for outcome in outcomes} <= {"ok", "pending"}
            samples = sample_table(outcomes)
            assert set(samples.group_by("run").len()["len"]) <= {per_run}
            seen.append(samples["run"].n_unique())
    assert writer.returncode == 0
    assert seen == sorted(seen), "a run that was whole stays so"
    assert {1, 2, 3, 4, 5} <= set(seen)
    whole = [parquet(sample_table(account(each).outcomes)) for each in (written, campaign)]
    assert whole[0] == whole[1]
