"""Known issues and shared file systems in campaigns on a real Slurm."""

from __future__ import annotations

import json

import pytest

from tests.cli.campaigns import records
from tests.slurm.campaigns import UCX, Login
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.system
RULES = """
[[issue]]
name = "mine"
action = "skip"
reason = "it's cursed on more than one node"
url = "https://example.org/1"
[issue.when]
nodes_above = 1
env = { UCX_LOG_LEVEL = "warn" }
"""


def test_a_run_that_is_left_out_has_a_record_and_starts_nothing(login: Login) -> None:
    (login.directory / "rules.toml").write_text(RULES)
    variants = f"a={UCX} b={UCX},UCX_LOG_LEVEL=warn"
    campaign = login.plan(
        *("--variants", variants, "--nodes", "1 2", "--set", "known_issues=rules.toml"),
        *("--set", f"paths.shared=['{login.directory.parent}']"),
    )
    login.run("submit", campaign)
    said = login.run("status", "--watch", campaign)
    assert "3 ok, 1 skipped of 4 runs" in said
    (skipped,) = [one for one in records(campaign).values() if one["status"] == "skipped"]
    assert (skipped["nodes"], skipped["variant"]) == (2, "b")
    assert skipped["reason"] == "known issue mine: it's cursed on more than one node (https://example.org/1)"
    assert "nothing is missing" in login.run("submit", "--campaign", campaign)
    places = json.loads((campaign / "paths.json").read_text())["places"]
    assert places["the campaign"]["real"] == str(campaign.resolve())


def test_a_campaign_on_no_shared_file_system_is_refused_before_anything_is_submitted(
    slurm: SlurmCluster, login: Login
) -> None:
    campaign = login.plan("--set", "paths.shared=['/elsewhere', '$NOWHERE']")
    said = login.run("submit", campaign, code=6)
    assert "lies below none of paths.shared: /elsewhere; $NOWHERE (a variable in it isn't set here)" in said
    assert not slurm.say("squeue", "--noheader")
    assert not list(campaign.glob("jobs/*/submitted.json"))
