"""Processes that wait for messages: asleep where the profile says so, and told where they poll on too few cores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpubench.node.spec.waiting import ASLEEP
from tests.cli.campaigns import campaign_in, records, words, write_suite
from tests.conftest import Run

pytestmark = pytest.mark.system
EVENT = ("--set", "layout.waiting=event")


def test_every_process_of_a_run_has_what_event_sets_and_none_is_said_to_poll(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench(*words(write_suite(tmp_path), *EVENT, "--blocks", "1", protocol="ucx"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "oversubscribed" not in done.stdout + done.stderr
    campaign = campaign_in(tmp_path)
    for name, record in records(campaign).items():
        assert (record["status"], record["warnings"]) == ("ok", [])
        processes = json.loads((campaign / "runs" / name / "provenance.json").read_text())["processes"]
        assert {one["role"] for one in processes} == {"scheduler", "worker", "client"}
        assert all(ASLEEP.items() <= one["ucx"]["env_at_start"].items() for one in processes)
