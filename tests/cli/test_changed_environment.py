"""An environment that changed silently with the variant blocks the comparison unless that is allowed."""

import json
from pathlib import Path

import pytest

from gpubench.store.campaign import Campaign
from tests.cli.campaigns import words, write_suite
from tests.conftest import Run
from tests.store.campaign_builder import QUICK, begin, finish, make_plan


def slower(label: str, _: object) -> float:
    return 1.5 if label == "1.19.0" else 1.0


def with_kernel(campaign: Campaign, kernel: str) -> None:
    """Every run of the candidate has run on this kernel."""
    for path in campaign.runs_dir.glob("*/provenance.json"):
        if json.loads((path.parent / "run.json").read_text())["variant"] == "1.19.0":
            plain = json.loads(path.read_text())
            for node in plain["nodes"]:
                node["kernel"] = kernel
            path.write_text(json.dumps(plain))


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Regressions everywhere, or so it seems: the candidate's runs report another kernel."""
    made = begin(tmp_path / "c", make_plan(suite=QUICK[3:]))
    finish(made, slower)
    with_kernel(made, "6.2.0")
    return made


SAID = "environment: changed with the variant: kernel 6.1.0 → 6.2.0; if that is meant: --allow kernel"


def test_compare_ends_undecided_until_the_field_is_allowed(gpubench: Run, campaign: Campaign) -> None:
    blocked = gpubench("compare", campaign.directory)
    assert (blocked.returncode, SAID in blocked.stdout) == (21, True), blocked.stdout + blocked.stderr
    planned = campaign.verdicts.read_bytes()
    assert {cell["verdict"] for cell in json.loads(planned)["cells"]} == {"inconclusive"}

    allowed = gpubench("compare", campaign.directory, "--allow", "ker*", "--allow", "kernle")
    assert allowed.returncode == 20, allowed.stdout + allowed.stderr
    assert "kernel is 6.1.0 in 1.17.0, 6.2.0 in 1.19.0 (allowed to change)" in allowed.stdout
    assert "--allow kernle: nothing of that name changed (did you mean 'kernel'?)" in allowed.stderr
    assert campaign.verdicts.read_bytes() == planned


def test_every_form_of_report_says_it_too(gpubench: Run, campaign: Campaign) -> None:
    done = gpubench("report", campaign.directory, "--markdown")
    assert (done.returncode, SAID in done.stdout) == (0, True), done.stdout + done.stderr
    done = gpubench("report", campaign.directory, "--allow", "kernel")
    assert (done.returncode, "regression" in done.stdout) == (0, True), done.stdout + done.stderr
    for said in (done.stdout, campaign.report.read_text(), campaign.summary.read_text()):
        assert "kernel is 6.1.0 in 1.17.0, 6.2.0 in 1.19.0 (allowed to change)" in said


def test_what_the_profile_allows_is_part_of_the_plan(gpubench: Run, tmp_path: Path) -> None:
    plan = make_plan(suite=QUICK[3:])
    defaults = plan.site.defaults.model_copy(update={"allow_changed": ["kernel"]})
    site = plan.site.model_copy(update={"defaults": defaults})
    campaign = begin(tmp_path / "c", plan.model_copy(update={"site": site}))
    finish(campaign, slower)
    with_kernel(campaign, "6.2.0")
    done = gpubench("compare", campaign.directory, "--allow", "kernel")
    assert done.returncode == 20, done.stdout + done.stderr
    assert {cell["verdict"] for cell in json.loads(campaign.verdicts.read_text())["cells"]} == {"regression"}


@pytest.mark.integration
def test_two_versions_of_ucx_differ_in_nothing_that_blocks_their_comparison(gpubench: Run, tmp_path: Path) -> None:
    suite = write_suite(tmp_path, reps=1, count=10)
    done = gpubench(*words(suite, "--blocks", "1", variants="1.19.0 1.22.0", protocol="ucx"), code=0)
    assert "tasks | 1.22.0 vs 1.19.0" in done.stdout
    assert "unplanned difference" not in done.stdout
    assert "environment: " not in done.stdout
