"""Runs that a known issue leaves out are skipped, also where their job never came to write that down."""

from pathlib import Path

from campaign_builder import Writer, begin, make_plan

from gpubench.model.plan import AppliedIssue, Plan
from gpubench.store.accounting import account

WHY = "known issue bad: it crashes (https://example.org/1)"


def skipping() -> Plan:
    """Two blocks on one node, of which every second run is planned to be skipped."""
    plan = make_plan(blocks=2)
    issue = AppliedIssue(name="bad", action="skip", why=WHY, nodes=1, variant=plan.variants[1].label)
    return plan.model_copy(update={"known_issues": [issue]})


def test_a_planned_skip_counts_as_skipped_with_and_without_a_record(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", skipping())
    writer, label = Writer(campaign), campaign.plan.variants[1].label
    for job, block, run in campaign.rows():
        if run.variant != label:
            writer.write(job, block, run)
        elif block.block == 1:
            writer.write(job, block, run, status="skipped", reason=WHY)
    accounting = account(campaign)
    assert accounting.counts() == {"ok": 2, "skipped": 2}
    assert {one.reason for one in accounting.outcomes if one.run.variant == label} == {WHY}
    assert accounting.warnings == ()


def test_while_its_job_lives_a_planned_skip_is_pending_like_every_other_run(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", skipping())
    assert account(campaign, alive=["n1-1"]).counts() == {"pending": 4}


def test_only_planned_skips_are_excused(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", skipping())
    assert account(campaign).counts() == {"lost": 2, "skipped": 2}
