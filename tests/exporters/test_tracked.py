"""A campaign as runs of a tracker: what its tables show, and names that it takes."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

from campaign_builder import Writer, begin, make_plan, workload

from gpubench.model.cell_names import cell_names, workload_key
from gpubench.results.exporters import tracked
from gpubench.results.exporters.export import artifacts
from gpubench.results.judging import judge_campaign

SUITE = (
    ("strided-sum", {"size": 500_000, "generate": True}, 4, 0.1),
    ("strided-sum", {"size": 20_000, "generate": False}, 4, 0.1),
)
TAKEN = re.compile(r"[/\w.\- ]{1,250}")
"""Names of metrics and tags that MLflow takes: its mlflow/utils/validation.py."""


def test_a_run_has_every_sample_and_the_mean_of_each_workload_that_is_ok(tmp_path: Path) -> None:
    plan = make_plan(suite=SUITE, blocks=1)
    failing = workload(*SUITE[1][:3]).params_id
    writer = Writer(begin(tmp_path / "c", plan))
    first, second = writer.campaign.rows()
    writer.write(*first)
    writer.write(*second, failed={failing: "wrong answer"})
    judged = judge_campaign(writer.campaign)
    names = cell_names([workload_key(item) for item in plan.workloads])
    runs = list(
        tracked.runs(
            plan,
            judged.outcomes,
            judged.results.runs,
            {item.params_id: name for item, name in zip(plan.workloads, names, strict=True)},
        )
    )
    assert all("=" in name for name in names), "no names that MLflow would refuse are tried"
    for run in runs:
        assert all(TAKEN.fullmatch(name) for name, *_ in run.metrics)
        assert all(TAKEN.fullmatch(name) for name in run.tags)
    good, bad = ({name: [m[1] for m in run.metrics if m[0] == name] for name, *_ in run.metrics} for run in runs)
    samples = [name for name in good if name.endswith("/wall_s")]
    means = [name.replace("/wall_s", "/mean_s") for name in samples]
    assert [len(good[name]) for name in samples] == [4, 4]
    assert [good[name] for name in means] == [[statistics.fmean(good[name])] for name in samples]
    assert [name in bad for name in means] == [True, False]
    assert [run.tags["reason"] for run in runs] == ["", "strided-sum generate=False size=20000 failed: wrong answer"]


def test_what_started_a_job_is_an_artifact_under_each_scheduler(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(suite=SUITE, blocks=1))
    (job,) = campaign.jobs
    for name in ("job.sh", "job.yaml", "job.log"):
        campaign.job_dir(job.job).mkdir(parents=True, exist_ok=True)
        (campaign.job_dir(job.job) / name).touch()
    folder = f"jobs/{job.job}"
    assert {path.name for path, place in artifacts(campaign) if place == folder} == {"job.sh", "job.yaml"}
