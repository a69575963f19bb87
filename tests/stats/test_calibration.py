"""The verdict rule against simulated campaigns, small enough for CI; the whole is ``python -m benchmarks.calibration``.

Bounds allow for chance at about one in ten thousand, and seeds are fixed, so a failure means that the verdict rule has
changed.
"""

import numpy as np
import pytest
import scipy

from benchmarks.calibration import store_path, whole_path
from benchmarks.calibration.alarms import count_alarms
from benchmarks.calibration.campaigns import generate
from benchmarks.calibration.noise import MODELS, Noise, Shape
from benchmarks.calibration.powers import die, find
from gpubench.stats.paired_blocks import BASELINE, CANDIDATE

SEED = 7


def most_of_300() -> float:
    """Computed in a test: scipy's distributions take a second to import, which other test processes need not wait."""
    return float(scipy.stats.binom.isf(1e-4, 300, 0.05))


@pytest.mark.parametrize("model", ["restart 0.8 %", "tail 5 % x2", "lost when slow", "all together"])
def test_at_most_five_percent_of_a_against_a_campaigns_raise_an_alarm(model):
    alarms = count_alarms(SEED, MODELS[model], Shape(300, 6, 8))
    assert alarms.alarmed <= most_of_300()
    assert alarms.covered > 0.93


def test_alarms_do_happen_so_the_simulation_can_tell_a_rule_that_never_rejects():
    assert count_alarms(SEED, MODELS["iid"], Shape(300, 6, 8)).alarmed >= scipy.stats.binom.ppf(1e-4, 300, 0.05)


def test_stragglers_raise_no_alarms_in_three_blocks():
    # Without the within-run floor 26 % of such campaigns would alarm.
    assert count_alarms(SEED, MODELS["tail 5 % x2"], Shape(300, 45, 3)).alarmed <= 3


def test_three_percent_in_one_cell_of_six_is_found_with_eight_blocks():
    assert find(SEED, Noise(job=0.02, restart=0.008), Shape(300, 6, 8), 0.03).regression >= 0.88


def test_equivalent_is_said_in_at_most_five_percent_at_the_margin():
    found = find(SEED, Noise(job=0.02, restart=0.015), Shape(600, 1, 8), 0.03)
    assert 600 * found.equivalent <= scipy.stats.binom.isf(1e-4, 600, 0.05)


def test_ten_percent_stragglers_of_twice_the_time_are_read_as_ten_percent_and_found():
    found = find(SEED, Noise(restart=0.004), Shape(300, 1, 8, reps=30), tail=0.1)
    assert found.effect == pytest.approx(0.1, abs=0.005)
    assert found.regression > 0.98


def test_a_candidate_that_dies_in_thirty_percent_of_blocks_is_never_equivalent():
    found = die(SEED, Noise(restart=0.004), Shape(300, 1, 8), 0.3, exactly=True)
    assert (found.equivalent, found.broken) == (0, 1)


@pytest.mark.parametrize(("variants", "blocks"), [(2, 12), (3, 5), (5, 8)])
def test_runs_that_resemble_those_before_them_raise_no_more_alarms(variants, blocks):
    # Where each second block of two was the mirror image of the first, 7 % of such campaigns alarmed.
    alarms = count_alarms(SEED, MODELS["AR(1) 0.8"], Shape(2000, 1, blocks, variants=variants))
    assert alarms.upper <= 0.065


@pytest.mark.parametrize(("model", "variants"), [("restart 0.8 %", 2), ("5 % lost at random", 3)])
def test_the_sample_table_and_the_arrays_give_identical_verdicts(model, variants):
    assert whole_path.disagreements(SEED, MODELS[model], Shape(4, 6, 5, variants=variants)) == 0


@pytest.mark.parametrize("variants", [2, 3])
def test_the_simulated_orders_are_those_of_the_plan(variants):
    (campaigns,) = generate(SEED, Noise(), Shape(2, 1, 7, variants=variants))
    for which in range(2):
        blocks = store_path.plan_campaign(campaigns, which).jobs[0].blocks
        planned = [[store_path.LABELS.index(run.variant) for run in block.runs] for block in blocks]
        assert planned == campaigns.orders[which].tolist()


# Losses so frequent that few campaigns show every way in which a run or a workload can end.
@pytest.mark.parametrize("noise", [Noise(restart=0.008, lost=0.15), Noise(restart=0.008, lost_when_slow=0.15)])
def test_run_directories_and_merge_and_the_arrays_give_identical_verdicts(noise):
    assert store_path.disagreements(SEED, noise, Shape(2, 3, 5, reps=4)) == 0
    assert store_path.disagreements(SEED, noise, Shape(1, 3, 5, reps=4, variants=3)) == 0


def test_the_simulated_noise_is_the_noise_that_was_asked_for():
    (campaigns,) = generate(SEED, Noise(job=0.02, restart=0.015, iteration=0.0), Shape(400, 3, 8))
    level = np.log(campaigns.times.mean(axis=-1))
    difference = level[..., CANDIDATE] - level[..., BASELINE]
    assert difference.std() == pytest.approx(0.015 * np.sqrt(2), rel=0.05)
    assert level[:, 0, :, 0].std() == pytest.approx(np.hypot(0.02, 0.015), rel=0.05)
    assert np.abs(campaigns.first.sum(axis=2)).max() == 0
