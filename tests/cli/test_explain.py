"""``gpubench diff`` on campaigns as they stand on disk, copied ones included."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpubench.store.campaign import Campaign
from tests.conftest import Run
from tests.store.campaign_builder import QUICK, begin, finish, make_plan, variant


def edit(campaign: Campaign, change: Callable[[dict[str, Any], str, int], None]) -> None:
    """Rewrite every provenance; ``change`` gets it with the run's variant and block."""
    for path in campaign.runs_dir.glob("*/provenance.json"):
        record, plain = json.loads((path.parent / "run.json").read_text()), json.loads(path.read_text())
        change(plain, record["variant"], record["block"])
        path.write_text(json.dumps(plain))


def disturbed(plain: dict[str, Any], label: str, block: int) -> None:
    """The candidate runs on another kernel, under more load; every third block on another processor."""
    for node in plain["nodes"]:
        node["kernel"] = "6.1.0" if label == "1.17.0" else "6.2.0"
        node["cpu_model"] = f"model {block % 3}"
        for entry in node["load"]:
            entry["load1"] += (2 + block / 10) * (label != "1.17.0")


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    made = begin(
        tmp_path / "c",
        make_plan((variant("1.17.0"), variant("1.19.0", env={"UCX_RNDV_THRESH": "8192"})), suite=QUICK[4:], blocks=6),
    )
    finish(made)
    edit(made, disturbed)
    shutil.copytree(made.directory, tmp_path / "home")
    return Campaign.open(tmp_path / "home")


def run_of(campaign: Campaign, label: str, block: int) -> str:
    return next(run.run for _, place, run in campaign.rows() if (run.variant, place.block) == (label, block))


def test_between_variants_the_planned_is_told_apart_and_noise_stands_beside(gpubench: Run, campaign: Campaign) -> None:
    done = gpubench("diff", "1.17.0", "1.19.0", campaign.directory)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    planned, unplanned = done.stdout.split("Differences that the plan didn't ask for:")
    assert "environment.UCX_RNDV_THRESH: unset → 8192  (in 6 of 6 blocks, separation 1.00)" in planned
    assert "image.ucx.version: 1.17.0 → 1.19.0" in planned
    said = " ".join(unplanned.split())
    assert "kernel: 6.1.0 → 6.2.0 (asked for by nobody; in 6 of 6 blocks, separation 1.00)" in said
    assert "Changed from block to block, never within one: cpu_model." in said
    assert "load average, mean" in said
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_has_every_number(gpubench: Run, campaign: Campaign) -> None:
    words = ("diff", "1.17.0", "1.19.0", "--json", campaign.directory)
    found = json.loads(gpubench(*words).stdout)
    (kernel,) = [one for one in found["differences"] if one["field"] == "kernel"]
    assert kernel == {
        "field": "kernel", "before": "6.1.0", "after": "6.2.0", "why": "", "blocks": 6, "differ": 6, "score": 1.0
    }  # fmt: skip
    load = found["noise"]["load"]
    assert (load["blocks"], load["difference"]) == (6, pytest.approx(2.25))
    assert load["t"] > 20
    assert found["noise"]["steal"]["t"] is None


def test_runs_of_two_campaigns_are_named_by_id_or_directory(gpubench: Run, campaign: Campaign, tmp_path: Path) -> None:
    there = begin(tmp_path / "there", make_plan(suite=QUICK[4:], blocks=1).model_copy(update={"protocol": "tcp"}))
    finish(there)
    theirs = next(there.runs_dir.iterdir())
    ours = run_of(campaign, "1.19.0", 2)
    done = gpubench("diff", ours[:9], theirs, campaign.directory)
    assert done.returncode == 0, done.stdout + done.stderr
    planned, unplanned = done.stdout.split("Differences that the plan didn't ask for:")
    assert "plan.protocol: ucx → tcp" in planned
    assert "environment.UCX_RNDV_THRESH: 8192 → unset" in planned
    assert "cpu_model: model 2 → Intel(R) Xeon(R)" in unplanned
    assert "paired t" not in unplanned


def test_two_runs_of_one_variant_differ_in_nothing_planned(gpubench: Run, campaign: Campaign) -> None:
    names = [run_of(campaign, "1.17.0", block) for block in (0, 1)]
    done = gpubench("diff", *names, campaign.directory)
    assert "Planned differences: none." in done.stdout
    assert "cpu_model: model 0 → model 1" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("zzz", "zzz"), "no run 'zzz'"),
        (("", "1"), "no run ''"),
        (("1.17.0", "1.19"), "no variant '1.19' (did you mean '1.19.0'?)"),
    ],
)
def test_what_is_not_there_is_said(gpubench: Run, campaign: Campaign, words: tuple[str, ...], said: str) -> None:
    done = gpubench("diff", *words, campaign.directory)
    assert done.returncode == 2
    assert said in done.stderr


def test_an_ambiguous_beginning_is_refused(gpubench: Run, campaign: Campaign) -> None:
    names = [run.run for _, _, run in campaign.rows()]
    twice = next(one[0] for one in names if sum(other[0] == one[0] for other in names) > 1)
    assert "write more of it" in gpubench("diff", twice, names[0], campaign.directory).stderr


def test_runs_without_provenance_are_compared_by_their_plans(gpubench: Run, campaign: Campaign) -> None:
    for path in campaign.runs_dir.glob("*/provenance.json"):
        path.unlink()
    done = gpubench("diff", "1.17.0", "1.19.0", campaign.directory)
    assert done.returncode == 0, done.stderr
    assert "settings.UCX_RNDV_THRESH: absent → 8192" in done.stdout
    assert "Noise: not recorded." in done.stdout
