"""``--metric``: what of the samples of a campaign is judged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gpubench.writer.run_dir import append_links
from tests.conftest import ROOT, Run
from tests.in_process import Invoked, invoked
from tests.store.campaign_builder import QUICK, Writer, begin, make_plan

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1"
COSTS = {"1.17.0": {"cpu_s": 2.0, "energy_j": 100.0}, "1.19.0": {"cpu_s": 2.6, "energy_j": 80.0}}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two variants, as fast as each other; the candidate takes 30 % more processor time and a fifth less energy."""
    made = begin(tmp_path_factory.mktemp("metrics") / "c", make_plan(suite=QUICK[2:4], blocks=6))
    writer = Writer(made, costs=COSTS)
    for job, block, planned in made.rows():
        directory = writer.write(job, block, planned)
        about = {"receiver": "a", "sender": "b", "count": 1, "seconds": 1.0, "workload": "merge"}
        about["params_id"] = planned.workloads[0]
        append_links(directory, [{**about, "bytes": 1000 if planned.variant == "1.17.0" else 1100}])
    return made.directory


def compare(path: Path, *words: str) -> Invoked:
    return invoked("compare", path, *words)


def verdicts(path: Path, metric: str) -> set[tuple[str, str]]:
    found = json.loads(compare(path, "--metric", metric, "--json").stdout)
    assert found["settings"]["metric"] == metric
    return {(one["workload"], one["verdict"]) for one in found["cells"]}


def test_each_metric_has_verdicts_of_its_own(campaign: Path) -> None:
    names = {name for name, *_ in QUICK[2:4]}
    assert verdicts(campaign, "cpu_s") == {(name, "regression") for name in names}
    assert verdicts(campaign, "energy_j") == {(name, "improvement") for name in names}
    assert not {"regression", "improvement"} & {word for _, word in verdicts(campaign, "wall_s")}


def test_bytes_of_a_run_are_judged_though_nothing_varies_and_only_where_some_moved(campaign: Path) -> None:
    assert verdicts(campaign, "bytes_moved") == {("merge", "regression")}
    said = compare(campaign, "--metric", "bytes_moved").output
    assert "note: no bytes_moved, so in no comparison: transpose-sum" in said
    assert "more is worse: +5 % is 5 % more" in said


def test_verdicts_of_another_metric_are_never_left_as_the_campaign_s(campaign: Path) -> None:
    assert compare(campaign).exit_code in (0, 21)
    before = (campaign / "verdicts.json").read_bytes()
    assert compare(campaign, "--metric", "cpu_s").exit_code == 20
    assert (campaign / "verdicts.json").read_bytes() == before


@pytest.mark.parametrize("metric", ["cpu_s", "energy_j"])
def test_a_campaign_without_such_costs_says_so(gpubench: Run, tmp_path: Path, metric: str) -> None:
    shutil.copytree(GOLDEN / "campaign", tmp_path / "tiny")
    done = gpubench("compare", tmp_path / "tiny", "--metric", metric)
    assert done.returncode == 3
    assert f"its samples have no {metric}; " in done.stderr


def test_joules_of_different_counters_are_not_compared(gpubench: Run, tmp_path: Path) -> None:
    made = begin(tmp_path / "c", make_plan(suite=QUICK[2:3], blocks=3))
    writer = Writer(made, costs=COSTS)
    for number, row in enumerate(made.rows()):
        directory = writer.write(*row)
        record = json.loads((directory / "run.json").read_text())
        counters = ["n/gpu-0"] if number else ["n/gpu-0", "n/package-0"]
        record["workloads"][0]["details"] = {"energy_of": counters}
        (directory / "run.json").write_text(json.dumps(record))
    done = gpubench("compare", made.directory, "--metric", "energy_j")
    assert done.returncode == 3
    assert "sums over different counters (gpu-0 and gpu-0 + package-0)" in done.stderr
    assert gpubench("compare", made.directory, "--metric", "cpu_s").returncode != 3


@pytest.mark.parametrize(("kept", "code"), [(0.5, 0), (0.0, 3)])
def test_a_gpu_s_counter_that_stands_still_for_a_short_repetition_is_no_fault(
    gpubench: Run, tmp_path: Path, kept: float, code: int
) -> None:
    made = begin(tmp_path / "c", make_plan(suite=QUICK[2:3], blocks=6))
    writer = Writer(made, costs=COSTS)
    for row in made.rows():
        path = writer.write(*row) / "samples.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for number, line in enumerate(lines):
            line["energy_j"] *= 2 * kept if number % 2 else 0.0
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = gpubench("compare", made.directory, "--metric", "energy_j")
    if code:
        assert done.returncode == code
        assert "its samples have no energy_j" in done.stderr
    else:
        assert verdicts(made.directory, "energy_j") == {(QUICK[2][0], "improvement")}


def test_imports_have_seconds_alone(gpubench: Run) -> None:
    done = gpubench("compare", GOLDEN / "import", "--metric", "cpu_s")
    assert done.returncode == 2
    assert "--metric: an import has only seconds" in done.stderr
