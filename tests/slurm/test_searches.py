"""A search whose steps are campaigns of a real Slurm."""

from __future__ import annotations

import pytest

from tests.cli.campaigns import write_suite
from tests.slurm.campaigns import Login
from tests.slurm.hosts import until
from tests.slurm.test_campaigns import leave_no_process, running

pytestmark = [pytest.mark.system, pytest.mark.long]
SLOW = ",GPUBENCH_SLOW=100%"
POINTS = f"a=1.22.0 b=1.22.0 c=1.22.0{SLOW}"


def test_a_planted_cause_is_found_by_jobs_and_by_a_search_that_was_killed(login: Login) -> None:
    suite = write_suite(login.directory, reps=6, count=200)
    site = ("--site", "local-slurm", "--nodes", "1", "--workers", "1", "--protocol", "tcp")
    with login.start("bisect", "--points", POINTS, "--suite", suite, *site) as killed:
        until(lambda: any(running(step) for step in login.directory.glob("outputs/*/step-*")), "a run")
        killed.kill()
    (search,) = login.directory.glob("outputs/*-bisect-*")
    assert "tasks became slower between b and c: +" in login.run("bisect", search)
    leave_no_process(login.slurm)
