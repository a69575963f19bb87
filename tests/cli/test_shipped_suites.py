"""Every workload of the suites that are made for a machine without GPUs, in a real run with the run's secret."""

from pathlib import Path

import pytest

from tests.cli.campaigns import campaign_in, records
from tests.conftest import Run

pytestmark = [pytest.mark.system, pytest.mark.long]


@pytest.mark.parametrize("suite", ["full", "tasks", "fabric", "weak-arrays", "weak-dataframes"])
def test_a_suite_measures_all_its_workloads(gpubench: Run, tmp_path: Path, suite: str) -> None:
    variants = ("--variants", "a=1.22.0 b=1.22.0")
    gpubench("bench", "--suite", suite, *variants, "--blocks", "1", "--reps", "1", timeout=1500, code=0)
    runs = records(campaign_in(tmp_path)).values()
    assert [run["status"] for run in runs] == ["ok", "ok"]
    workloads = [item for run in runs for item in run["workloads"]]
    assert [(item["workload"], item["reason"]) for item in workloads if item["status"] != "ok"] == []
