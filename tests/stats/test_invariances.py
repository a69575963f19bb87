"""What must never matter: row order, names of runs, unit of time; and what mirrors when labels are swapped."""

import dataclasses
import math
import random

import hypothesis.strategies as st
import pytest
from campaign_by_hand import blocks_of, comparison
from hypothesis import given, settings

from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import exit_code, judge

differences = st.lists(st.floats(-0.2, 0.2), min_size=0, max_size=9)
few = settings(max_examples=40, deadline=None)


def verdict_of(runs, *, baseline="A", candidate="B"):
    given_comparison = dataclasses.replace(comparison(runs), baseline=baseline, candidate=candidate)
    return judge([given_comparison], VerdictSettings())[0]


@few
@given(differences, st.randoms(use_true_random=False))
def test_row_order_and_run_names_never_matter(effects, chance):
    runs = blocks_of(effects)
    renamed = [dataclasses.replace(run, run=str(chance.random())) for run in runs]
    chance.shuffle(renamed)
    assert verdict_of(renamed) == verdict_of(runs)


@few
@given(differences)
def test_swapping_the_labels_mirrors_effect_and_interval(effects):
    runs = blocks_of(effects)
    forth, back = verdict_of(runs), verdict_of(runs, baseline="B", candidate="A")
    mirrored = {"regression": "improvement", "improvement": "regression"}
    assert back.verdict == mirrored.get(forth.verdict, forth.verdict)
    for ahead, behind in ((forth.effect, back.effect), (forth.low, back.high), (forth.high, back.low)):
        assert (ahead is None) == (behind is None)
        if ahead is not None:
            assert math.log1p(ahead) == pytest.approx(-math.log1p(behind), abs=1e-9)


@few
@given(differences, st.floats(1e-6, 1e6))
def test_the_unit_of_time_never_matters(effects, unit):
    scaled, plain = verdict_of(blocks_of(effects, level=unit)), verdict_of(blocks_of(effects))
    assert scaled.verdict == plain.verdict
    assert scaled.effect == (None if plain.effect is None else pytest.approx(plain.effect, abs=1e-9))


@few
@given(differences)
def test_every_number_is_finite_or_none_and_bounds_are_in_order(effects):
    verdict = verdict_of(blocks_of(effects))
    for value in (verdict.effect, verdict.low, verdict.high, verdict.p, verdict.p_holm):
        assert value is None or math.isfinite(value)
    if verdict.low is not None:
        assert verdict.low <= verdict.effect <= verdict.high
    assert exit_code([verdict]) in (0, 20, 21)


@few
@given(st.lists(differences, min_size=1, max_size=6), st.integers(0, 100))
def test_the_order_of_the_family_never_matters(family, seed):
    comparisons = [comparison(blocks_of(effects), workload=str(n)) for n, effects in enumerate(family)]
    shuffled = random.Random(seed).sample(comparisons, len(comparisons))
    by_key = {verdict.key["workload"]: verdict for verdict in judge(shuffled, VerdictSettings())}
    for verdict in judge(comparisons, VerdictSettings()):
        other = by_key[verdict.key["workload"]]
        assert (other.verdict, other.p_holm, other.flags) == (verdict.verdict, verdict.p_holm, verdict.flags)
