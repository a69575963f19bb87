"""``gpubench diff`` on campaigns as they stand on disk, copied ones included."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpubench.store.campaign import Campaign
from tests.conftest import Run
from tests.store.campaign_builder import QUICK, Writer, begin, finish, make_plan, variant, workload


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


def test_blocks_that_were_not_begun_are_no_blocks_of_a_difference(gpubench: Run, tmp_path: Path) -> None:
    made = begin(tmp_path / "c", make_plan(suite=QUICK[4:], blocks=6))
    writer, *_, last = Writer(made), *sorted({block.block for _, block, _ in made.rows()})
    for job, block, run in made.rows():
        late = {"status": "skipped", "reason": "no time left in the budget: 3 s"} if block.block > last - 2 else {}
        writer.write(job, block, run, **late)
    shown = gpubench("diff", "1.17.0", "1.19.0", made.directory).stdout
    assert f"1.17.0 → 1.19.0, 4 blocks of {made.plan.campaign}" in shown
    assert "means over 4 blocks" in shown
    assert "(in 4)" not in shown


def run_of(campaign: Campaign, label: str, block: int) -> str:
    return next(run.run for _, place, run in campaign.rows() if (run.variant, place.block) == (label, block))


def test_without_names_the_two_variants_of_a_campaign_are_compared(
    gpubench: Run, campaign: Campaign, tmp_path: Path
) -> None:
    named = gpubench("diff", "1.17.0", "1.19.0", campaign.directory)
    assert gpubench("diff", campaign.directory / "runs").stdout == named.stdout
    shutil.copytree(campaign.directory, tmp_path / "outputs" / "c")
    newest = gpubench("diff")
    assert (newest.returncode, newest.stdout) == (0, named.stdout)
    assert "campaign outputs/c, the newest with results" in newest.stderr


def test_of_three_variants_two_must_be_named_and_of_two_candidates_the_way_to_verdicts_is_told(
    gpubench: Run, tmp_path: Path
) -> None:
    finish(begin(tmp_path / "three", make_plan((variant("a"), variant("b"), variant("c")), suite=QUICK[4:], blocks=1)))
    done = gpubench("diff", tmp_path / "three")
    assert done.returncode == 2
    assert "has 3 variants: a, b, c; type: gpubench diff A B" in done.stderr
    said = " ".join(gpubench("diff", "b", "c", tmp_path / "three").stdout.split())
    assert f"whether the differences matter: gpubench compare {tmp_path / 'three'} --baseline b --candidate c" in said


def test_between_variants_the_planned_is_told_apart_and_noise_stands_beside(gpubench: Run, campaign: Campaign) -> None:
    done = gpubench("diff", "1.17.0", "1.19.0", campaign.directory)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    planned, unplanned = done.stdout.split("Differences that the plan didn't ask for:")
    assert "environment.UCX_RNDV_THRESH: unset → 8192  (in 6 of 6 blocks)" in planned
    assert "image.ucx.version: 1.17.0 → 1.19.0" in planned
    said = " ".join(unplanned.split())
    assert "kernel: 6.1.0 → 6.2.0 (not asked for; in 6 of 6 blocks)" in said
    assert "load average, mean" in said
    assert re.search(r"Whether it matters \(1\.19\.0 vs 1\.17\.0\): tasks: [+-]\d+\.\d % \[.*\], inconclusive", said)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_runs_of_two_campaigns_are_named_by_id_or_directory(gpubench: Run, campaign: Campaign, tmp_path: Path) -> None:
    there = begin(tmp_path / "there", make_plan(suite=QUICK[4:], blocks=1).model_copy(update={"protocol": "tcp"}))
    finish(there)
    theirs = next(there.runs_dir.iterdir())
    ours = run_of(campaign, "1.19.0", 2)
    done = gpubench("diff", ours[:9], theirs, campaign.directory, code=0)
    planned, unplanned = done.stdout.split("Differences that the plan didn't ask for:")
    assert "plan.protocol: ucx → tcp" in planned
    assert "environment.UCX_RNDV_THRESH: 8192 → unset" in planned
    assert "cpu_model: model 2 → Intel(R) Xeon(R)" in unplanned
    assert "paired t" not in unplanned


def test_of_two_campaigns_with_other_variants_both_sets_are_named(
    gpubench: Run, campaign: Campaign, tmp_path: Path
) -> None:
    there = begin(tmp_path / "there", make_plan((variant("1.17.0"), variant("1.20.0")), suite=QUICK[4:], blocks=1))
    finish(there)
    text = " ".join(gpubench("diff", campaign.directory, there.directory, code=0).stdout.split())
    assert "variants planned: A has 1.17.0, 1.19.0; B has 1.17.0, 1.20.0" in text
    assert f"whether the differences matter: gpubench compare {campaign.directory} " in text
    assert "variants planned" not in gpubench("diff", campaign.directory, tmp_path / "c", code=0).stdout


def test_an_ambiguous_beginning_is_refused(gpubench: Run, campaign: Campaign) -> None:
    names = [run.run for _, _, run in campaign.rows()]
    twice = next(one[0] for one in names if sum(other[0] == one[0] for other in names) > 1)
    assert "write more of it" in gpubench("diff", twice, names[0], campaign.directory).stderr


def test_runs_without_provenance_are_compared_by_their_plans(gpubench: Run, campaign: Campaign) -> None:
    for path in campaign.runs_dir.glob("*/provenance.json"):
        path.unlink()
    done = gpubench("diff", "1.17.0", "1.19.0", campaign.directory, code=0)
    assert "settings.UCX_RNDV_THRESH: absent → 8192" in done.stdout
    assert "Noise: not recorded." in done.stdout


LAYERED: tuple[tuple[str, dict[str, Any], int, float], ...] = (
    ("link", {"test": "tag_lat", "size": 10_000_000, "iterations": 40, "pairs": "all"}, 6, 0.1),
    ("link", {"test": "send_recv", "size": 10_000_000, "iterations": 40, "pairs": "all"}, 6, 0.2),
    ("message", {"size": 10_000_000}, 6, 0.2),
    ("merge", {"rows_per_worker": 200_000, "frac_match": 0.3}, 6, 0.41),
)
NOT_IN_UCX = "not in UCX, which is equivalent in link test=tag_lat"
IN_DASK = f"Slower in Dask or the tasks: merge +20 %; {NOT_IN_UCX}; not in the binding, which is equivalent in"
NONE = "No layer is decided to be slower or faster; undecided: none."


def layered(tmp_path: Path, suite: Any, effects: Callable[[str, dict[str, Any]], float], *, fails: str = "") -> Path:
    """Eight blocks; the workload ``fails`` fails in the baseline."""
    made = begin(tmp_path / "layered", make_plan(suite=suite, blocks=8))
    seconds = {workload(name, params, 1).params_id: typical for name, params, _, typical in suite}
    writer = Writer(made, lambda label, one: effects(one.name, dict(one.params)) if label == "1.19.0" else 1.0, seconds)
    failed = {one.params_id: "no route" for one in made.plan.workloads if one.name == fails}
    for row in made.rows():
        writer.write(*row, failed=failed if row[2].variant == "1.17.0" else {})
    return made.directory


def of_layers(gpubench: Run, campaign: Path, *words: str) -> str:
    done = gpubench("diff", *(words or ("1.17.0", "1.19.0")), campaign)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    said = " ".join(done.stdout.partition("In which layer (1.19.0 vs 1.17.0):")[2].split())
    return re.sub(r"\b\d+\.\d %", "20 %", said)


@pytest.mark.parametrize(
    ("slower", "said"),
    [
        ({"link", "send_recv", "message", "merge"}, "Slower in UCX: link test=tag_lat +20 %."),
        ({"send_recv", "message", "merge"}, f"+20 % and message +20 %; {NOT_IN_UCX}."),
        ({"merge"}, IN_DASK),
        (set(), NONE),
    ],
)
def test_the_cause_is_the_lowest_layer_that_is_slower(
    gpubench: Run, tmp_path: Path, slower: set[str], said: str
) -> None:
    def effect(name: str, params: dict[str, Any]) -> float:
        return 1.2 if (name if params.get("test") != "send_recv" else "send_recv") in slower else 1.0

    campaign = layered(tmp_path, LAYERED, effect)
    found = of_layers(gpubench, campaign)
    assert said in found
    assert of_layers(gpubench, campaign, "1.19.0", "1.17.0") == found
    (layers,) = json.loads(gpubench("diff", "1.17.0", "1.19.0", "--json", campaign).stdout)["layers"]
    assert [len(cells) for cells in layers["layers"].values()] == [1, 2, 1]
    assert layers["layers"]["Dask or the tasks"][0]["verdict"] == ("regression" if "merge" in slower else "equivalent")


def test_a_lower_layer_that_is_undecided_or_unmeasured_may_be_the_cause(gpubench: Run, tmp_path: Path) -> None:
    suite = (("link", {**LAYERED[0][1], "size": 1024}, 6, 0.1), LAYERED[2], LAYERED[3])
    campaign = layered(tmp_path, suite, lambda name, _: 1.0 if name == "link" else 1.2, fails="link")
    found = of_layers(gpubench, campaign)
    assert "Slower in the binding: message +20 %; UCX may be the cause: link is inconclusive." in found
    assert "link sent 1 KiB, message sent 10 MB: UCX can send messages of other sizes in other ways." in found


def test_faster_is_told_as_slower_is_and_a_campaign_without_link_says_nothing(gpubench: Run, tmp_path: Path) -> None:
    faster = layered(tmp_path / "one", (LAYERED[1], LAYERED[3]), lambda name, _: 0.8 if name == "merge" else 1.0)
    assert of_layers(gpubench, faster).startswith(
        "Faster in Dask or the tasks: merge -20 %; UCX was not measured alone, and may be the cause; not in the "
        "binding, which is equivalent in link."
    )
    assert of_layers(gpubench, layered(tmp_path / "two", LAYERED[2:], lambda *_: 1.2)) == ""
