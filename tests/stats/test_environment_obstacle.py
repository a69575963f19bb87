"""An environment that changed with the variant: no verdict but broken, and the fields are named."""

from __future__ import annotations

import dataclasses

import pytest
from campaign_by_hand import blocks_of, cell, comparison, noisy, without

from gpubench.stats.data import ComparisonInput
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict, exit_code, judge

KERNEL = {"kernel": "6.1.0 → 6.2.0"}


def in_another(one: ComparisonInput, changed: dict[str, str] | None = None) -> ComparisonInput:
    return dataclasses.replace(one, changed=KERNEL if changed is None else changed)


def verdict(one: ComparisonInput, settings: VerdictSettings | None = None) -> Verdict:
    return judge([one], settings or VerdictSettings())[0]


@pytest.mark.parametrize("effect", [-0.2, 0.0, 0.2])
def test_whatever_the_times_say_the_cell_is_inconclusive(effect):
    found = verdict(in_another(cell(noisy(8, effect=effect, sd=0.005))))
    assert verdict(cell(noisy(8, effect=effect, sd=0.005))).verdict != "inconclusive"
    assert (found.verdict, found.p, found.p_holm, found.more_blocks) == ("inconclusive",) + (None,) * 3
    assert (
        found.reason == "environment: changed with the variant: kernel 6.1.0 → 6.2.0; if that is meant: --allow kernel"
    )
    assert found.effect == pytest.approx(verdict(cell(noisy(8, effect=effect, sd=0.005))).effect)
    assert exit_code([found]) == 21


def test_at_most_three_fields_are_named_and_long_values_are_cut():
    changed = {
        "cores": "2 → 4",
        "environment.PATH": "/opt" * 40 + " → /usr",
        "kernel": "a → b",
        "memory": "1 → 2",
        "z": "x",
    }
    reason = verdict(in_another(cell(noisy(8)), changed)).reason
    assert "cores 2 → 4, environment.PATH /opt" in reason
    assert "…, kernel a → b and 2 more; " in reason
    assert reason.endswith("--allow cores --allow environment.PATH --allow kernel …")
    assert "memory" not in reason
    assert len(reason) < 250


def test_its_p_counts_as_one_in_the_family():
    slow = cell(noisy(8, effect=0.04, sd=0.035))
    alone = judge([slow], VerdictSettings())[0]
    also = [cell(noisy(8, effect=0.2, sd=0.005), workload=f"w{number}") for number in range(9)]
    blocked = judge([slow, *(in_another(one) for one in also)], VerdictSettings())
    assert alone.verdict == "regression"
    assert blocked[0].p_holm == pytest.approx(10 * alone.p)
    assert blocked[0].verdict == "inconclusive"
    assert judge([slow, *also], VerdictSettings())[0].p_holm == pytest.approx(alone.p)


def test_a_candidate_that_breaks_is_broken_all_the_same():
    runs = without(blocks_of(noisy(8, sd=0.001)), (2, "B"), (5, "B"))
    assert verdict(in_another(comparison(runs))).verdict == "broken"


@pytest.mark.parametrize("differences", [noisy(2), noisy(4), [0.1] * 8])
def test_it_is_named_before_obstacles_that_further_blocks_could_take_away(differences):
    found = verdict(in_another(cell(differences)))
    assert found.reason.startswith("environment: ")
    assert found.more_blocks is None
