"""Interleaved blocks for real: clusters that live at the same time, repetitions in turns, and nobody works beside."""

import itertools
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.campaigns import (
    SIGINT,
    Front,
    campaign_in,
    cluster_processes,
    nothing_left,
    records,
    running,
    until,
    words,
    write_suite,
)
from tests.conftest import Run

pytestmark = pytest.mark.integration
INTERLEAVED = ("--set", "layout.arrangement=interleaved")


def samples(campaign: Path) -> list[dict[str, Any]]:
    """Every sample with its variant, in the order of time."""
    found = []
    for path in campaign.glob("runs/*/samples.jsonl"):
        variant = json.loads((path.parent / "run.json").read_text())["variant"]
        found += [{**json.loads(line), "variant": variant} for line in path.read_text().splitlines()]
    return sorted(found, key=lambda one: str(one["started_at"]))


def turns(campaign: Path) -> list[tuple[str, list[bool]]]:
    """Who measured how often without a switch, and which of the repetitions were warm-ups."""
    found: list[tuple[str, list[bool]]] = []
    for one in samples(campaign):
        if not found or found[-1][0] != one["variant"]:
            found.append((one["variant"], []))
        found[-1][1].append(one["warmup"])
    return found


def test_repetitions_take_turns_and_only_one_cluster_works(gpubench: Run, tmp_path: Path) -> None:
    suite = write_suite(tmp_path, reps=8, count=20)
    done = gpubench(*words(suite, *INTERLEAVED, "--blocks", "1"), code=0)
    assert "interleaved: 2 clusters of a block are alive at once; one works, the others are stopped" in done.stdout
    campaign = campaign_in(tmp_path)
    (block,) = json.loads((campaign / "plan.json").read_text())["jobs"][0]["blocks"]
    ran = records(campaign).values()
    assert {one["status"] for one in ran} == {"ok"}
    # Both clusters lived while the other measured: the second one was there before the first one ended.
    started, ended = ([one[key] for one in ran] for key in ("started_at", "ended_at"))
    assert max(started) < min(ended)
    # The turns are the plan's (turns of one variant that follow each other stand together here).
    planned: list[tuple[str, int]] = []
    for turn in block["turns"]:
        before = planned.pop()[1] if planned and planned[-1][0] == turn["variant"] else 0
        planned.append((turn["variant"], before + turn["reps"]))
    took = turns(campaign)
    assert [(variant, warmups.count(False)) for variant, warmups in took] == planned
    # The first turn of each begins with the warm-up, no other one does.
    firsts = dict(reversed(took))
    assert all(warmups[0] for warmups in firsts.values())
    assert sum(warmups.count(True) for _, warmups in took) == 2
    # No repetition of one began before the other's had ended.
    for one, other in itertools.pairwise(samples(campaign)):
        over = datetime.fromisoformat(one["started_at"]) + timedelta(seconds=one["wall_s"])
        assert datetime.fromisoformat(other["started_at"]) >= over - timedelta(milliseconds=5)
    for one in ran:
        assert one["phases"]["waited"] > 0
    verdicts = json.loads((campaign / "verdicts.json").read_text())["cells"]
    assert {one["arrangement"] for one in verdicts} == {"interleaved"}
    said = gpubench("compare", campaign, "--markdown").stdout
    assert "arrangement | interleaved: the clusters of a block were alive at the same time" in said
    assert gpubench("results", "fsck", campaign).returncode == 0
    nothing_left(lambda: cluster_processes(campaign))


@pytest.mark.system
@pytest.mark.parametrize(
    "two_nodes", [pytest.param(False, marks=pytest.mark.long, id="one node"), pytest.param(True, id="two nodes")]
)
def test_ctrl_c_leaves_nothing_and_resume_makes_a_whole_block_of_it(
    tmp_path: Path, gpubench: Run, two_nodes: bool
) -> None:
    nodes = ("--nodes", "2") if two_nodes else ()
    front = Front(tmp_path, *words(write_suite(tmp_path, reps=20, count=60), *INTERLEAVED, *nodes, "--blocks", "1"))
    campaign = until(lambda: running(tmp_path), "a first sample").parents[1]
    front.kill(SIGINT)
    assert front.end() == 130, front.output
    nothing_left(lambda: cluster_processes(campaign))
    gpubench("bench", "--campaign", campaign, code=0)
    ok = [record for record in records(campaign).values() if record["status"] == "ok"]
    assert sorted(record["variant"] for record in ok) == ["a", "b"]
    assert {record["nodes"] for record in ok} == {1 + two_nodes}
    nothing_left(lambda: cluster_processes(campaign))
