"""``link``: the figures of the real ``ucx_perftest``, whose sides are processes beside the workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpubench.workloads import link
from gpubench.workloads.base import UnavailableError, WorkloadContext
from gpubench.workloads.link import LinkTest
from tests.cli.campaigns import campaign_in, records
from tests.conftest import Run
from tests.workloads.running import complete

WORKERS = ["tcp://127.0.0.1:1", "tcp://127.0.0.1:2"]
# Lines of UCX 1.22.0, -t tag_lat -n 2000
PRINTED = """
[thread 0]               918      3.981   642.718  1104.209        0.01       0.01        1556         906
Final:                  2000      3.996   200.459   615.281        0.04       0.01        4989        1625
"""
SUITE = """
name = "links"
reps = 2
warmup = 1
[[workload]]
name = "link"
[workload.params]
size = "1KiB"
iterations = 50
[[workload]]
name = "link"
[workload.params]
test = "tag_bw"
size = "64KiB"
iterations = 20
"""


def test_the_overall_figure_counts_and_not_the_last_interval_s_average() -> None:
    assert link.figures(PRINTED) == {"iterations": 2000, "median_s": 3.996e-6, "overall_s": 615.281e-6}


@pytest.mark.parametrize("text", ["", "Final: 2000", "Final: 2000 1 2 3 4 5 6", "Final: a b c d e f g h"])
def test_what_holds_no_eight_final_figures_is_no_result(text: str) -> None:
    with pytest.raises(ValueError, match="no final figures"):
        link.figures(text)


def measurement(**params: Any) -> LinkTest:
    return LinkTest(WorkloadContext(None, WORKERS, 1, "cpu", "ucxx"), complete("link", params))


PLAYED = {"iterations": 1000.0, "median_s": 1e-6, "overall_s": 2e-6}


@pytest.mark.parametrize(
    ("played", "status"),
    [
        ([PLAYED], "unchecked"),
        ([PLAYED | {"iterations": 999.0}], "wrong"),
        ([PLAYED | {"overall_s": 0.0}], "wrong"),
        ([PLAYED, PLAYED], "wrong"),
    ],
)
def test_every_pair_completes_all_iterations_in_a_time_that_is_one(played: list[dict[str, float]], status: str) -> None:
    assert measurement().check(played).status == status


def test_an_image_without_ucx_cannot_measure_it(cluster: WorkloadContext) -> None:
    without = LinkTest(cluster, complete("link", {}))
    with pytest.raises(UnavailableError, match="no UCX is loaded, so there has no ucx_perftest beside it"):
        without.setup()


@pytest.mark.system
def test_pairs_of_workers_play_through_the_image_s_own_ucx(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "links.toml").write_text(SUITE)
    words = ("--variants", "a=1.22.0 b=1.22.0", "--blocks", "1", "--workers", "2", "--protocol", "ucx")
    done = gpubench("bench", "--suite", "links.toml", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    campaign = campaign_in(tmp_path)
    for run, record in records(campaign).items():
        trips, one_way = sorted(record["workloads"], key=lambda each: str(each["params"]["test"]), reverse=True)
        assert {trips["params"]["test"], one_way["params"]["test"]} == {"tag_lat", "tag_bw"}
        for workload in (trips, one_way):
            assert (workload["status"], workload["reason"]) == ("ok", ""), run
            assert workload["details"]["libucp"].endswith("libucp.so.0")
        assert trips["details"]["seen_bytes"] == 2 * 2 * 1024 * 50
        assert one_way["details"]["seen_bytes"] == 2 * 65536 * 20
    for folder in campaign.glob("runs/*"):
        lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
        assert {line["answer"] for line in lines} == {"unchecked"}
        assert all(line["wall_s"] > 0 for line in lines)
        links = [json.loads(line) for line in (folder / "links.jsonl").read_text().splitlines()]
        assert sorted(link["count"] for link in links) == [40, 100, 100]
