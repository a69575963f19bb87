"""Cells of another metric than seconds, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from campaign_builder import Writer, begin, make_plan

from gpubench.errors import DataError
from gpubench.merge.family import Cell, cells_of, remarks, without
from gpubench.stats.settings import Metric
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from tests.merging import merge, read_runs

SUITE = [("merge", {"rows_per_worker": 2000, "frac_match": 0.3}, 3, 0.4)]
OLD, NEW = "1.17.0", "1.19.0"
BYTES = "its workloads move nothing between workers; take one that does: merge, transpose-sum"


def table(campaign: Campaign, metric: Metric, moved: Mapping[str, Mapping[str, int]] | None = None) -> list[Cell]:
    merged = merge(read_runs(campaign.runs_dir).runs)
    return cells_of(campaign.plan, account(campaign).outcomes, merged, metric, moved or {})


def measured(directory: Path, costs: Mapping[str, Mapping[str, float]], **details: object) -> Campaign:
    """A campaign of one workload, each of whose records has these details."""
    campaign = begin(directory / "c", make_plan(blocks=5, suite=SUITE))
    writer = Writer(campaign, costs=costs)
    for row in campaign.rows():
        writer.write(*row)
    for path in campaign.runs_dir.glob("*/run.json") if details else ():
        record = json.loads(path.read_text())
        record["workloads"][0]["details"] = {name: value(record) for name, value in details.items()}  # type: ignore[operator]
        path.write_text(json.dumps(record))
    return campaign


def test_a_run_whose_samples_lack_the_metric_is_skipped_and_the_reason_names_it(tmp_path: Path) -> None:
    campaign = measured(tmp_path, {NEW: {"cpu_s": 2.0}})
    found = table(campaign, Metric.CPU_S)
    assert {(cell.outcome.run.variant, cell.status, cell.reason, bool(cell.wall_s)) for cell in found} == {
        (OLD, "skipped", "no cpu_s", False),
        (NEW, "ok", "", True),
    }
    assert without(found, Metric.CPU_S, "c") == set()


def test_a_run_that_failed_is_failed_whatever_its_samples_lack(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=5, suite=SUITE))
    row = next(iter(campaign.rows()))
    Writer(campaign).write(*row, failed={campaign.plan.workloads[0].params_id: "out of memory"})
    (cell,) = (cell for cell in table(campaign, Metric.CPU_S) if cell.outcome.run.run == row[2].run)
    assert (cell.status, cell.reason) == ("failed", "out of memory")


@pytest.mark.parametrize(
    ("metric", "then"),
    [
        (Metric.CPU_S, "its workloads have none"),
        (
            Metric.ENERGY_J,
            "NVML and RAPL can't be read on its nodes; the manual's page on metrics says how to allow it",
        ),
        (Metric.BYTES_MOVED, BYTES),
    ],
)
def test_a_campaign_without_the_metric_is_refused_with_what_to_do(metric: Metric, then: str, tmp_path: Path) -> None:
    campaign = measured(tmp_path, {})
    with pytest.raises(DataError) as caught:
        without(table(campaign, metric), metric, "c")
    assert (str(caught.value.what), caught.value.then) == (f"c: its samples have no {metric}", then)


def test_bytes_are_those_that_a_run_moved_and_a_run_that_moved_none_is_skipped(tmp_path: Path) -> None:
    campaign = measured(tmp_path, {})
    params_id = campaign.plan.workloads[0].params_id
    first, *_ = campaign.rows()
    found = table(campaign, Metric.BYTES_MOVED, {first[2].run: {params_id: 1234}})
    by_run = {cell.outcome.run.run: cell for cell in found}
    assert (by_run[first[2].run].status, by_run[first[2].run].wall_s) == ("ok", (1234.0,))
    others = {(cell.status, cell.reason, cell.wall_s) for run, cell in by_run.items() if run != first[2].run}
    assert others == {("skipped", "no bytes_moved", ())}


def test_joules_of_different_counters_are_refused_with_both(tmp_path: Path) -> None:
    def counters(record: Mapping[str, object]) -> list[str]:
        return ["n1/package-0", *(["n1/dram"] if record["variant"] == NEW else [])]

    campaign = measured(tmp_path, {OLD: {"energy_j": 1.0}, NEW: {"energy_j": 1.0}}, energy_of=counters)
    with pytest.raises(DataError) as caught:
        without(table(campaign, Metric.ENERGY_J), Metric.ENERGY_J, "c")
    assert caught.value.what == (
        "c: joules of merge are sums over different counters (dram + package-0 and package-0), which can't be compared"
    )
    assert caught.value.then == "let every node read the same ones, and measure again"


def test_the_same_counters_of_other_nodes_can_be_compared(tmp_path: Path) -> None:
    def counters(record: Mapping[str, object]) -> list[str]:
        return ["n1/package-0"] if record["variant"] == NEW else ["n2/package-0"]

    campaign = measured(tmp_path, {OLD: {"energy_j": 1.0}, NEW: {"energy_j": 1.0}}, energy_of=counters)
    assert without(table(campaign, Metric.ENERGY_J), Metric.ENERGY_J, "c") == set()


def test_seconds_need_no_remark_and_other_metrics_say_what_they_are(tmp_path: Path) -> None:
    plan = make_plan(blocks=5, suite=SUITE)
    params_id = plan.workloads[0].params_id
    assert list(remarks(plan, Metric.WALL_S, {params_id})) == []
    assert list(remarks(plan, Metric.ENERGY_J, set())) == [
        "metric energy_j: joules of the run's processors and GPUs in a repetition; more is worse: +5 % is 5 % more"
    ]
    assert list(remarks(plan, Metric.BYTES_MOVED, {params_id}))[1:] == ["no bytes_moved, so in no comparison: merge"]
    polling = [line for line in remarks(plan, Metric.CPU_S, set()) if "poll" in line]
    assert [line.partition(" isn't informative")[0] for line in polling] == (
        [f"cpu_s of {OLD}, {NEW}"] if plan.protocol == "ucx" else []
    )
