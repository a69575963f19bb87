"""What scaling is judged by, out of a campaign on disk."""

from __future__ import annotations

from pathlib import Path

from campaign_builder import begin, finish, make_plan

from gpubench.report.scaling import scaling_section
from gpubench.report.sections import text_lines
from gpubench.results.campaigns import campaign_results
from gpubench.results.curves import Curve, curves
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from tests.merging import merge, read_runs


def curves_of(campaign: Campaign) -> list[Curve]:
    merged = merge(read_runs(campaign.runs_dir).runs)
    return curves(campaign_results(campaign, account(campaign).outcomes, merged))


def test_a_curve_per_workload_and_variant_with_the_runs_of_every_place(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(nodes=(1, 2, 4), blocks=6))
    finish(campaign)
    found = curves_of(campaign)
    assert len(found) == 5 * 2
    assert {dict(one.key)["workload"]: one.rule for one in found} == {
        "message": "none",
        "merge": "weak",
        "transpose-sum": "strong",
        "tasks": "none",
    }
    for curve in found:
        assert [(one.nodes, one.workers_per_node, len(one.logs)) for one in curve.measured] == [
            (1, 2, 6),
            (2, 2, 6),
            (4, 2, 6),
        ]
    lines = list(text_lines(scaling_section("c", found)))
    merge_ = lines.index("merge, 1.17.0 (weak: the work grows with the workers)")
    assert lines[merge_ + 1].split() == ["nodes", "x", "workers", "seconds", "speed-up", "efficiency", "runs"]
    assert lines[merge_ + 2].split()[:3] == ["1", "x", "2"]
    message = next(at for at, line in enumerate(lines) if "(no rule of scaling" in line)
    assert lines[message].startswith("message ")
    assert [line.split()[4:7] for line in lines[message + 2 : message + 5]] == [["µs", "-", "-"]] * 3
    assert not lines[message + 5].startswith("  ")
    plain = scaling_section("c", found).data
    assert [size["nodes"] for size in plain["curves"][0]["sizes"]] == [1, 2, 4]
    for curve in plain["curves"]:
        ratios = [size[name] for size in curve["sizes"] for name in ("speedup", "efficiency")]
        assert (None in ratios) == (curve["rule"] == "none")


def test_a_campaign_without_a_single_run_has_empty_curves(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c")
    found = curves_of(campaign)
    assert all(not one.logs for curve in found for one in curve.measured)
    assert "  no run of it is ok" in list(text_lines(scaling_section("c", found)))
