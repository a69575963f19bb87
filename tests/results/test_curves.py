"""What scaling is judged by; clusters with as many threads in other layouts are other sizes, also of two sides."""

from pathlib import Path

import pytest
from campaign_builder import begin, finish, make_plan
from test_imports import results, rows

from gpubench.model.cell_names import cell_names
from gpubench.report.scaling import scaling_section
from gpubench.report.sections import text_lines
from gpubench.results.campaigns import campaign_results
from gpubench.results.curves import Curve, curves
from gpubench.results.merge.table import sample_table
from gpubench.results.results import Results, judge
from gpubench.results.sides import two_sides
from gpubench.stats.data import CellRun, Key
from gpubench.stats.question import Question
from gpubench.stats.settings import VerdictSettings
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign


def curves_of(campaign: Campaign) -> list[Curve]:
    outcomes = account(campaign).outcomes
    return curves(campaign_results(campaign, outcomes, sample_table(outcomes)))


def test_a_curve_per_workload_and_variant_with_the_runs_of_every_place(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(nodes=(1, 2, 4), blocks=6))
    finish(campaign)
    found = curves_of(campaign)
    assert len(found) == 5 * 2
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


def test_a_campaign_without_a_single_run_has_empty_curves(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c")
    found = curves_of(campaign)
    assert all(not one.logs for curve in found for one in curve.measured)
    assert "  no run of it is ok" in list(text_lines(scaling_section("c", found)))


def key(nodes: int, workers: int) -> Key:
    return (
        *(("workload", "merge"), ("backend", "dask"), ("params", "{}")),
        *(("nodes", nodes), ("workers_per_node", workers), ("threads_per_worker", 1)),
    )


def side(name: str, *slower: float) -> Results:
    """Two workers on one node take a second, one on each of two nodes three; so many times as long on either."""
    runs = [
        CellRun(
            f"{nodes}{block}",
            block,
            "1.22.0",
            None,
            None,
            (nodes**1.585 * slower[nodes - 1] * (1 + block / 1000),),
            "ok",
            key=key(nodes, 2 // nodes),
            origin=name,
            workers=2,
        )
        for nodes in (1, 2)
        for block in range(6)
    ]
    return Results("campaign", name, Path(name), ["1.22.0"], [key(1, 2), key(2, 1)], runs, lambda _question: [])


def test_two_sides_keep_layouts_apart_in_curves_names_and_seconds() -> None:
    sides = two_sides(side("a", 1.0, 1.0), side("b", 1.1, 1.2), Question())
    first, _ = curves(sides)
    assert [(one.nodes, one.workers_per_node, len(one.logs)) for one in first.measured] == [(1, 2, 6), (2, 1, 6)]
    assert cell_names([dict(each) for each in sides.keys]) == ["merge 1 on each node", "merge 2 on each node"]
    comparisons = sides.family(Question())
    verdicts = judge(comparisons, VerdictSettings())
    both = [verdict.sides_s for verdict in verdicts if verdict.sides_s]
    assert sorted(round(before, 2) for before, _ in both) == [1.0, 3.01]
    assert [after / before for before, after in both] == pytest.approx([1 + (one.effect or 0.0) for one in verdicts])
    assert sorted(one.effect for one in verdicts if one.effect) == pytest.approx([0.1, 0.2])


def test_where_some_rows_say_nothing_of_nodes_all_are_told_apart_by_their_workers() -> None:
    known = rows("old", nodes=2, workers_per_node=4, workers=8)
    (curve,) = curves(results(*known, *rows("old", workers=16)))
    assert not curve.by_node
    assert [(one.nodes, one.workers_per_node) for one in curve.measured] == [(1, 8), (1, 16)]
    assert sum(len(one.logs) for one in curve.measured) == pytest.approx(20)
