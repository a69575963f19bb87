"""A comparison that a known issue leaves out says so, and asks for no blocks."""

import dataclasses

from campaign_by_hand import cell, comparison, noisy, run

from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import judge

WHY = "known issue bad: it crashes (https://example.org/1)"


def test_the_reason_is_the_known_issue_and_more_blocks_are_no_help():
    left_out = [run(block, "B", (), status="skipped") for block in range(8)]
    baseline = [run(block, "A", (1.0, 1.1), order=0) for block in range(8)]
    skipped = dataclasses.replace(comparison([*baseline, *left_out]), skipped=WHY)
    (verdict,) = judge([skipped], VerdictSettings())
    assert (verdict.verdict, verdict.blocks, verdict.p, verdict.more_blocks) == ("inconclusive", 0, None, None)
    assert verdict.reason == f"no data: skipped, as planned: {WHY}"


def test_it_stays_in_the_family_and_changes_no_other_verdict():
    slow = cell(noisy(8, effect=0.06))
    skipped = dataclasses.replace(comparison([]), skipped=WHY)
    both = judge([slow, skipped], VerdictSettings())
    assert [verdict.verdict for verdict in both] == ["regression", "inconclusive"]
