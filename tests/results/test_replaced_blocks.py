"""A block that lost a run and has another in its place: the campaign is complete, and every screen counts it so."""

import json
from pathlib import Path

from campaign_builder import Writer, begin, make_plan

from gpubench.plan.additions import plan_more, plan_repair
from gpubench.store.accounting import account
from tests.in_process import invoked

SUITE = (("tasks", {"count": 500}, 3, 0.2),)


def repaired(directory: Path) -> Path:
    """Of six blocks, number 2 lost its candidate; number 6 is in its place."""
    writer = Writer(begin(directory, make_plan(suite=SUITE, blocks=6)))
    for job, block, run in writer.campaign.rows():
        writer.write(job, block, run, record=(block.block, run.variant) != (2, "1.19.0"))
    ended = {outcome.run.run: outcome.status for outcome in account(writer.campaign).outcomes}
    repair = plan_repair(writer.campaign.whole_plan, ended, writer.campaign.plan.created_at)
    assert repair.addition is not None
    writer.campaign = writer.campaign.append(repair.addition)
    for job, block, run in writer.campaign.rows():
        if block.replaces == 2:
            writer.write(job, block, run)
    return directory


def test_nothing_is_incomplete_and_the_block_is_counted_once(tmp_path: Path) -> None:
    directory = repaired(tmp_path / "c")
    status = invoked("status", directory)
    assert (status.exit_code, "; block 6 is in its place" in status.stdout) == (0, True)
    (cell,) = json.loads(invoked("compare", directory, "--json").stdout)["cells"]
    assert (cell["blocks"], "incomplete" in cell["flags"]) == (6, False)
    assert "Nothing has to be run" in invoked("report", directory).stdout
    page = (directory / "report.html").read_text()
    assert "6 blocks" in page
    assert "7 blocks" not in page
    assert "in at most 5 % of cases" in page


def test_blocks_that_were_added_after_a_look_raise_the_rate_of_false_alarms_that_is_promised(tmp_path: Path) -> None:
    writer = Writer(begin(tmp_path / "c", make_plan(suite=SUITE, blocks=5)))
    plan = writer.campaign.plan
    writer.campaign = writer.campaign.append(plan_more(plan, 2, plan.created_at))
    for row in writer.campaign.rows():
        writer.write(*row)
    invoked("report", tmp_path / "c")
    page = (tmp_path / "c" / "report.html").read_text()
    assert "in more than 5 % of cases, since blocks were added after a look at the results" in page
    assert "at most 5 %" not in page
    (note,) = json.loads(invoked("compare", tmp_path / "c", "--json").stdout)["notes"]
    assert note.startswith("2 blocks were added after the results had been looked at: ")
