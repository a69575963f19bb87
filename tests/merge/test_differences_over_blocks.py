"""What differs between two variants over their blocks, in words."""

import dataclasses
from collections.abc import Mapping

import pytest
from campaign_builder import make_plan

from gpubench.results.merge.environment_changes import planned_environment
from gpubench.results.merge.evidence import Evidence
from gpubench.results.merge.explain import FieldDifference, explain
from gpubench.results.merge.provenance import facts


def run(kernels: Mapping[str, str]) -> Evidence:
    """A run on hosts with these kernels."""
    nodes = [{"host": host, "kernel": kernel} for host, kernel in kernels.items()]
    return Evidence(facts=facts({"processes": [], "nodes": nodes}), noise={}, by_host={})


OLD, NEW = {"n1": "5"}, {"n1": "6"}


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([(OLD, NEW)], ("5", "6", 1, 1, 2)),
        ([(OLD, NEW), (OLD, NEW)], ("5", "6", 2, 2, 2)),
        ([(OLD, NEW), (OLD, OLD)], ("5", "5 or 6", 2, 1, 2)),
        ([(NEW, OLD), (NEW, NEW)], ("6", "5 or 6", 2, 1, 2)),
        ([(OLD, NEW), (NEW, OLD)], ("5", "6", 2, 2, 2)),  # to and fro: as in the first block
    ],
)
def test_a_difference_names_every_value_of_a_side_and_the_blocks_in_which_it_was_seen(
    blocks: list[tuple[dict[str, str], dict[str, str]]], expected: tuple[str, str, int, int, int]
) -> None:
    before, after, *counts = expected
    plan = make_plan(blocks=1)
    sides = (plan.variants[0].label, plan.variants[1].label)
    pairs = [(run(first), run(second)) for first, second in blocks]
    (difference,) = explain(pairs, sides, planned_environment(plan, {}), [{}, {}]).differences
    assert dataclasses.astuple(difference) == dataclasses.astuple(
        FieldDifference("kernel", before, after, difference.why, *counts)
    )
