"""Planning: exact where scipy gives an independent answer, simulated elsewhere."""

import math

import numpy as np
import pytest
import scipy

from gpubench.errors import DataError
from gpubench.stats import power


def test_the_detectable_effect_has_the_power_it_promises():
    for blocks, family in ((3, 6), (5, 1), (8, 45)):
        effect = power.detectable_effect(0.0153, blocks, family, power=0.9)
        assert power.power_of_test(effect, 0.0153, blocks, family) == pytest.approx(0.9)


def test_power_agrees_with_simulation():
    sample = np.random.default_rng(1).normal(math.log1p(0.03), 0.0219, (20_000, 8))
    found = np.mean(scipy.stats.ttest_1samp(sample, 0, axis=1).pvalue <= 0.05 / 6)
    assert power.power_of_test(0.03, 0.0219, 8, family=6) == pytest.approx(found, abs=0.015)


def test_blocks_needed_is_the_fewest_with_that_power():
    blocks = power.blocks_needed(0.03, 0.0219, family=6, power=0.9)
    assert power.power_of_test(0.03, 0.0219, blocks, 6) >= 0.9 > power.power_of_test(0.03, 0.0219, blocks - 1, 6)
    assert power.blocks_needed(0.001, 0.5) is None


def test_a_speed_up_needs_as_many_blocks_as_its_reciprocal_slow_down():
    assert power.blocks_needed(1 / 1.03 - 1, 0.02) == power.blocks_needed(0.03, 0.02)


@pytest.mark.parametrize("effect", [0.0, 0.01, 0.03])
def test_equivalence_power_agrees_with_simulation(effect):
    rng, blocks, sigma = np.random.default_rng(2), 8, 0.0219
    sample = rng.normal(math.log1p(effect), sigma, (40_000, blocks))
    reach = scipy.stats.t.ppf(0.95, blocks - 1) * sample.std(axis=1, ddof=1) / math.sqrt(blocks)
    inside = np.mean(np.abs(sample.mean(axis=1)) + reach <= math.log(1.03))
    assert power.equivalence_power(0.03, sigma, blocks, effect) == pytest.approx(inside, abs=0.01)


def test_equivalence_blocks_is_the_fewest_with_that_power():
    blocks = power.equivalence_blocks(0.03, 0.0219, 0.9)
    assert power.equivalence_power(0.03, 0.0219, blocks) >= 0.9 > power.equivalence_power(0.03, 0.0219, blocks - 1)


@pytest.mark.parametrize(("cells", "factor"), [(1, 1.73), (2, 1.40), (6, 1.18), (45, 1.06)])
def test_a_pilot_of_four_blocks_is_used_at_its_upper_limit(cells, factor):
    pilot = [[0.01, -0.01, 0.01, -0.01]] * cells
    sigma = power.sigma_from_history(pilot)[0]
    assert sigma.value == pytest.approx(np.std(pilot[0], ddof=1))
    assert sigma.upper / sigma.value == pytest.approx(factor, abs=0.01)
    assert sigma.freedom == 3 * cells


def test_cells_of_unlike_size_are_not_pooled():
    quiet, loud = [0.001, -0.001] * 4, [0.1, -0.1] * 4
    small, large = power.sigma_from_history([quiet, loud])
    assert large.value == pytest.approx(100 * small.value)
    assert small.freedom == 7


def test_a_pilot_of_one_block_is_refused():
    with pytest.raises(DataError, match="two complete blocks"):
        power.sigma_from_history([[0.1]])
    (least,) = power.sigma_from_history([[0.1, 0.3]])
    assert (least.value, least.freedom) == (pytest.approx(0.2 / math.sqrt(2)), 1)


@pytest.mark.parametrize(
    ("effect", "failed"), [(0.0, False), (0.01, False), (0.06, False), (-0.06, False), (0.06, True)]
)
@pytest.mark.parametrize("have", [2, 8, 12])
def test_blocks_to_decide_are_those_that_the_usual_formulas_still_lack(effect, failed, have):
    """θ·√n/σ at least t_{1-α/2m} + t_{0.8} for a difference; for equivalence from the margin, at t_{1-α}."""
    sd, family = 0.04, 6

    def decides(blocks):
        precision, luck = math.sqrt(blocks) / sd, scipy.stats.t.ppf(0.8, blocks - 1)
        differs = abs(effect) * precision >= scipy.stats.t.ppf(1 - 0.05 / (2 * family), blocks - 1) + luck
        same = (math.log(1.03) - abs(effect)) * precision >= scipy.stats.t.ppf(0.95, blocks - 1) + luck
        return (differs and (effect > 0 or not failed)) or (same and not failed)

    total = next(blocks for blocks in range(max(have + 1, 5), 201) if decides(blocks))
    found = power.blocks_to_decide(effect, sd, have, margin=0.03, family=family, failed=failed)
    assert found == total - have


@pytest.mark.parametrize("sd", [0.01, 0.05])
def test_a_prediction_asks_for_blocks_at_the_upper_limit_of_the_noise(sd):
    sigma = power.Sigma(sd, 1.5 * sd, 3)
    found = power.predict(sigma, blocks=8, family=6, margin=0.03, power=0.9)
    assert found == {
        "sigma": sd,
        "sigma_upper": 1.5 * sd,
        "detectable": power.detectable_effect(sd, 8, 6, 0.9),
        "detectable_upper": power.detectable_effect(1.5 * sd, 8, 6, 0.9),
        "blocks_for_margin": power.blocks_needed(0.03, 1.5 * sd, 6, 0.9),
        "blocks_for_equivalence": power.equivalence_blocks(0.03, 1.5 * sd, 0.9),
    }


def test_noise_from_its_parts_is_that_of_a_difference_of_two_runs():
    assert power.sigma_from_parts(0.03, 0.08, 4) == pytest.approx(math.sqrt(2 * (0.03**2 + 0.04**2)))


def test_a_campaign_of_many_blocks_is_told_of_up_to_a_hundred_further_ones() -> None:
    """Seen: none told with 150 blocks, as if more than a hundred further ones were needed."""
    have = 190
    further = power.blocks_to_decide(0.0, 0.19, have, margin=0.03, family=6)
    assert further is not None
    assert have + further > power.MOST_BLOCKS
    assert further <= power.MOST_FURTHER
    assert power.blocks_to_decide(0.0, 0.4, have, margin=0.03, family=6) is None
