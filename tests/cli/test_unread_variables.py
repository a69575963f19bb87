"""A variable that nothing reads changes nothing: refused by the plan, and said by UCX itself in the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.campaigns import campaign_in, records, words, write_suite
from tests.conftest import Run

MISSPELT = "a=1.22.0 b=1.22.0,UCX_TSL=tcp"


@pytest.mark.system
def test_what_was_allowed_and_no_process_reads_is_said_by_run_and_report(gpubench: Run, tmp_path: Path) -> None:
    asked = words(write_suite(tmp_path), "--blocks", "1", "--allow-unknown-env", variants=MISSPELT, protocol="ucx")
    done = gpubench(*asked)
    assert done.returncode == 0, done.stdout + done.stderr
    line = "UCX reads no variable UCX_TSL (maybe: UCX_TLS?): what was set changes nothing"
    campaign = campaign_in(tmp_path)
    assert [record["warnings"] for record in records(campaign).values()].count([line]) == 1
    assert gpubench("status", campaign).stdout.count(line) == 1
    assert line in (campaign / "report.html").read_text()
