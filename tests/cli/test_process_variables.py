"""Variables of a run's processes: what makes them sleep while they wait, and what nothing reads."""

import json
from pathlib import Path

import pytest

from gpubench.node.spec.waiting import ASLEEP
from tests.cli.campaigns import campaign_in, records, words, write_suite
from tests.conftest import Run

pytestmark = pytest.mark.system
EVENT = ("--set", "layout.waiting=event")


def test_every_process_of_a_run_has_what_event_sets_and_none_is_said_to_poll(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench(*words(write_suite(tmp_path), *EVENT, "--blocks", "1", protocol="ucx"), code=0)
    assert "oversubscribed" not in done.stdout + done.stderr
    campaign = campaign_in(tmp_path)
    for name, record in records(campaign).items():
        assert (record["status"], record["warnings"]) == ("ok", [])
        processes = json.loads((campaign / "runs" / name / "provenance.json").read_text())["processes"]
        assert {one["role"] for one in processes} == {"scheduler", "worker", "client"}
        assert all(ASLEEP.items() <= one["ucx"]["env_at_start"].items() for one in processes)


MISSPELT = "a=1.22.0 b=1.22.0,UCX_TSL=tcp"


def test_what_was_allowed_and_no_process_reads_is_said_by_run_and_report(gpubench: Run, tmp_path: Path) -> None:
    asked = words(write_suite(tmp_path), "--blocks", "1", "--allow-unknown-env", variants=MISSPELT, protocol="ucx")
    gpubench(*asked, code=0)
    line = "UCX reads no variable UCX_TSL (maybe: UCX_TLS?): what was set changes nothing"
    campaign = campaign_in(tmp_path)
    assert [record["warnings"] for record in records(campaign).values()].count([line]) == 1
    assert gpubench("status", campaign).stdout.count(line) == 1
    assert line in (campaign / "report.html").read_text()
