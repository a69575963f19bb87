"""Variants whose smallest sizes differ: their ratios are against different sizes, which is said and drawn so."""

from __future__ import annotations

from pathlib import Path

from campaign_builder import Writer, begin, make_plan, variant

from gpubench.report.charts.curves import efficiency
from gpubench.report.scaling import scaling_section
from gpubench.report.sections import text_lines
from gpubench.results.curves import curves
from gpubench.results.loading import results_of

SUITE = (("merge", {"rows_per_worker": 200_000, "frac_match": 0.3}, 3, 0.41),)
LEAST = {"1.17.0": 1, "1.18.1": 2, "1.19.0": 4}
"""The fewest nodes on which each variant runs."""


def test_a_curve_that_begins_at_another_size_says_so_and_one_size_is_not_drawn_as_100_percent(tmp_path: Path) -> None:
    plan = make_plan(tuple(map(variant, LEAST)), nodes=(1, 2, 4), blocks=3, suite=SUITE)
    writer = Writer(begin(tmp_path / "c", plan))
    for job, block, run in writer.campaign.rows():
        status = "ok" if job.nodes >= LEAST[run.variant] else "failed"
        writer.write(job, block, run, status=status, reason="" if status == "ok" else "out of memory")
    measured = curves(results_of(writer.campaign))
    said = [line.strip() for line in text_lines(scaling_section("c", measured)) if "its own smallest" in line]
    assert said == ["1.18.1 has no run at the smallest size: its figures are against 2 x 2, its own smallest"]
    drawn = efficiency(measured, [*LEAST], "merge")["data"]["values"]
    assert [(row["variant"], row["units"]) for row in drawn] == [
        *(("1.17.0", 2 * nodes) for nodes in (1, 2, 4)),
        *(("1.18.1", 2 * nodes) for nodes in (2, 4)),
    ]
