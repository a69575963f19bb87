"""What known issues make of a plan."""

from typing import Any

import pytest

from gpubench.model.known_issue import KnownIssue
from gpubench.model.plan import Plan
from gpubench.plan.additions import Repair, plan_repair
from gpubench.plan.budget import node_hours
from gpubench.plan.known_issues import issue_lines
from tests.plan.requests_by_hand import image, plan, site

NOW = "2026-11-20T13:00:00+00:00"
WORDS = "v1.12.x v1.13.x master"
NAMED_OTHERWISE = {
    "words": "a=stable b=v1.13.x",
    "images": {"stable": image("1.13.1"), "v1.13.x": image("1.14.0")},
}
SET_TWICE = {"words": "a=1.20.0 b=1.20.0,UCX_NET_DEVICES=eth0", "site": site(env={"UCX_NET_DEVICES": "lo"})}
FOUR_GPUS = site("[node]\ngpus = 4\n")
WHY = "known issue bad: it crashes (https://example.org/1)"


def rule(**changes: Any) -> KnownIssue:
    plain = {"name": "bad", "action": "skip", "reason": "it crashes", "url": "https://example.org/1"}
    when = {"ucx": {"min": "1.13", "max": "1.13"}, "nodes_above": 4}
    return KnownIssue.model_validate({**plain, "when": when, **changes})


def skipping(*rules: KnownIssue, words: str = WORDS, **changes: Any) -> Plan:
    return plan(words, **{"nodes": [1, 4, 8, 16], "images": {}, "known_issues": rules or [rule()], **changes})


def places(made: Plan) -> set[tuple[int, str]]:
    return {(job.nodes, run.variant) for job, _, run in made.runs() if made.skip_reason(job.nodes, run.variant)}


def test_a_skipped_run_is_planned_like_any_other_with_its_reason() -> None:
    made = skipping()
    assert places(made) == {(8, "v1.13.x"), (16, "v1.13.x")}
    assert made.skip_reason(8, "v1.13.x") == WHY
    assert [run.run for _, _, run in made.runs()] == [run.run for _, _, run in skipping(rule(action="warn")).runs()]
    assert Plan.parse(made.dump(), "plan.json") == made


@pytest.mark.parametrize(
    ("when", "changes", "expected"),
    [
        # An image knows its version better than its name.
        ({"ucx": {"min": "1.13", "max": "1.13"}, "nodes_above": 4}, NAMED_OTHERWISE, {(8, "a"), (16, "a")}),
        # Settings of the variant beat those of the site.
        ({"env": {"UCX_NET_DEVICES": "lo"}, "nodes_above": 1}, SET_TWICE, {(nodes, "a") for nodes in (4, 8, 16)}),
        # GPUs are those of the whole job.
        ({"gpus_above": 16}, {"site": FOUR_GPUS}, {(nodes, variant) for nodes in (8, 16) for variant in WORDS.split()}),
    ],
)
def test_a_rule_concerns_what_really_runs(
    when: dict[str, Any], changes: dict[str, Any], expected: set[tuple[int, str]]
) -> None:
    assert places(skipping(rule(when=when), **changes)) == expected


@pytest.mark.parametrize(("expires", "applied"), [("2026-11-21", True), ("2026-11-20", False), ("2026-11-19", False)])
def test_an_expired_rule_is_reported_and_not_applied(expires: str, applied: bool) -> None:
    made = skipping(rule(expires=expires))
    assert bool(places(made)) == applied
    notes = [note for note in made.notes if note.startswith("expired")]
    assert notes == (
        []
        if applied
        else [
            f"expired on {expires} and not applied: {WHY}; "
            "it would concern v1.13.x on 8 and 16 nodes: renew the rule or remove it"
        ]
    )


def test_a_workaround_is_set_for_every_variant_of_the_node_counts_concerned() -> None:
    made = skipping(rule(action="env", env={"UCX_A": "1"}))
    assert (made.workarounds(4), made.workarounds(8)) == ({}, {"UCX_A": "1"})
    assert places(made) == set()


@pytest.mark.parametrize("set_by", ["site", "variant"])
def test_a_workaround_leaves_alone_what_somebody_set_on_purpose(set_by: str) -> None:
    changes: dict[str, Any] = {"site": site(env={"UCX_A": "2"})} if set_by == "site" else {}
    words = WORDS if set_by == "site" else "v1.12.x,UCX_A=2 v1.13.x"
    assert skipping(rule(action="env", env={"UCX_A": "1", "UCX_B": "1"}), words=words, **changes).workarounds(8) == {
        "UCX_B": "1"
    }


def test_a_line_per_rule_says_what_where_and_why() -> None:
    rules = [rule(), rule(name="w", action="warn"), rule(name="e", action="env", env={"UCX_A": "1"})]
    assert list(issue_lines(skipping(*rules).known_issues)) == [
        f"skipped: v1.13.x on 8 and 16 nodes: {WHY}",
        f"warning: v1.13.x on 8 and 16 nodes: {WHY.replace('bad', 'w')}",
        f"set for every variant on 8, 16 nodes: UCX_A=1, for v1.13.x on 8 and 16 nodes: {WHY.replace('bad', 'e')}",
    ]


def test_one_node_is_no_nodes() -> None:
    made = plan(WORDS, nodes=[1], known_issues=[rule(action="env", env={"UCX_A": "1"}, when={"protocols": ["ucx"]})])
    (line,) = issue_lines(made.known_issues)
    assert line.startswith("set for every variant on 1 node: UCX_A=1, for v1.12.x on 1 node")


def test_node_counts_at_which_nothing_is_left_to_compare_are_named() -> None:
    assert [note for note in skipping(words="v1.12.x v1.13.x").notes if "compared" in note] == [
        f"on {nodes} nodes nothing can be compared: every candidate is skipped" for nodes in (8, 16)
    ]
    assert (
        "on 8 nodes nothing can be compared: the baseline v1.13.x is skipped"
        in skipping(words="v1.13.x master a=1.9").notes
    )
    assert not [note for note in skipping().notes if "compared" in note]


def test_skipped_runs_cost_nothing() -> None:
    made = skipping(nodes=[1, 8], workers=[1, 2])
    runs = sum(not made.skip_reason(job.nodes, run.variant) for job, _, run in made.runs())
    assert made.time.total_s == pytest.approx(runs * made.time.run_s), "with each number of workers"
    made = skipping()
    rows = {cost.nodes: cost for cost in node_hours(made)}
    assert {nodes: cost.runs for nodes, cost in rows.items()} == {1: 18, 4: 18, 8: 12, 16: 12}
    assert rows[16].node_hours == pytest.approx(16 * 12 * made.time.run_s / 3600)
    assert made.time.total_s == pytest.approx(sum(cost.seconds for cost in rows.values()))


def statuses(made: Plan, skipped: str, others: str) -> dict[str, str]:
    return {run.run: skipped if made.skip_reason(job.nodes, run.variant) else others for job, _, run in made.runs()}


def test_resume_leaves_planned_skips_alone() -> None:
    made = skipping()
    assert plan_repair(made, statuses(made, "skipped", "ok"), NOW) == Repair({}, None)
    assert plan_repair(made, statuses(made, "lost", "ok"), NOW) == Repair({}, None)


def test_a_planned_skip_beside_lost_runs_makes_no_broken_block() -> None:
    made = skipping(nodes=[8])
    repair = plan_repair(made, statuses(made, "skipped", "lost"), NOW)
    assert repair == Repair({"j001-n8": [1, 2, 3, 4, 5, 6]}, None)


def test_a_block_with_a_real_hole_is_replaced_and_skips_again() -> None:
    made = skipping(nodes=[8])
    status = statuses(made, "skipped", "ok")
    hole = next(run.run for job, block, run in made.runs() if block.block == 2 and status[run.run] == "ok")
    addition = plan_repair(made, {**status, hole: "lost"}, NOW).addition
    assert addition is not None
    ((new,),) = [job.blocks for job in addition.jobs]
    assert (new.replaces, {run.variant for run in new.runs}) == (2, set(WORDS.split()))
    assert made.skip_reason(8, "v1.13.x")
