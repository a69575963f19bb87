"""What a plan promises of its blocks, before anything runs."""

import math
import statistics
from pathlib import Path

import pytest
from requests_by_hand import plan, workload

from gpubench.campaign.plan_lines import plan_lines
from gpubench.plan.budget import FirstPass, PilotWorkload
from gpubench.plan.detectable import assumed_power
from gpubench.plan.request import History
from gpubench.stats.data import CellRun, ComparisonInput
from gpubench.stats.power import blocks_needed, detectable_effect, power_of_test, sigma_from_parts
from gpubench.store.campaign import Campaign

DIFFERENCES = (0.012, -0.004, 0.009, -0.011)


def planned(words="a=1.16.0 b=1.17.0", **changes):
    """Eight blocks of one workload."""
    return plan(words, workloads=[workload()], blocks=8, **changes)


def pilot(params_id):
    """Four blocks in which the variants differ by DIFFERENCES in logs."""
    runs = [
        CellRun(f"{variant}{block}", block, variant, None, None, (math.exp(log),), "ok")
        for block, difference in enumerate(DIFFERENCES)
        for variant, log in (("a", 0.0), ("b", difference))
    ]
    key = {"workload": "tasks", "params_id": params_id, "nodes": 1, "workers_per_node": 2}
    return [ComparisonInput(key, "a", "b", runs, 4)]


def test_a_plan_with_history_foresees_from_its_noise():
    params_id = planned().workloads[0].params_id
    (seen,) = planned(history=History("earlier", 4.0, 8, pilot(params_id))).foreseen
    assert seen.sigma == pytest.approx(statistics.stdev(DIFFERENCES))
    assert seen.sigma_upper / seen.sigma == pytest.approx(1.73, abs=0.01)
    assert power_of_test(seen.detectable_upper, seen.sigma_upper, 8) == pytest.approx(0.9)


def test_a_workload_is_foreseen_by_an_earlier_campaign_or_by_the_first_pass_and_never_by_both():
    """Seen: merge 4.8 % by the one and 18 % by the other, on one screen."""
    both = [workload(), workload(count=7)]
    tried = FirstPass("first", 20.0, 3.5, {item.params_id: PilotWorkload(1.0, 0.05, 1) for item in both})
    (alone,) = (note for note in plan(workloads=both, blocks=8, tried=tried).notes if "find differences" in note)
    assert (alone.count(" % in "), "repetitions scatter as in the first pass" in alone) == (2, True)
    history = History("earlier", 4.0, 8, pilot(both[0].params_id))
    made = plan(workloads=both, blocks=8, tried=tried, history=history)
    assert [seen.params_id for seen in made.foreseen] == [both[0].params_id]
    (rest,) = (note for note in made.notes if "find differences" in note)
    assert rest.count(" % in ") == 1
    lines = list(plan_lines(Campaign(Path("c"), made)))
    assert not lines[0].startswith("caution"), "what the first pass foretells isn't judged by an earlier campaign"


def test_what_the_first_pass_foretells_holds_for_all_comparisons_that_are_judged_together():
    """Each number of workers is a comparison of its own, and a wider family finds larger differences only."""
    tried = FirstPass("first", 20.0, 3.5, {workload().params_id: PilotWorkload(1.0, 0.05, 1)})
    sigma = sigma_from_parts(0.008, 0.05, workload().reps)
    for changes, family in (({}, 1), ({"words": "a=1.16.0 b=1.17.0 c=1.18.0"}, 2), ({"workers": [1, 2, 4]}, 3)):
        made = planned(tried=tried, **changes)
        assert len(made.comparisons) == family
        (line,) = (note for note in made.notes if "find differences" in note)
        assert line == (
            f"8 blocks find differences of about {100 * detectable_effect(sigma, 8, family, 0.9):.2g} % in tasks, "
            "or more, with 90 % power, if repetitions scatter as in the first pass, and runs of one version by 0.8 %"
        )


def test_without_history_nothing_is_foreseen():
    assert planned().foreseen == []


def test_a_plan_without_history_says_what_its_blocks_find_on_usual_machines():
    sigmas = [sigma_from_parts(restart, 0.01, 3) for restart in (0.004, 0.008, 0.015)]
    finds = [f"{100 * detectable_effect(sigma, 8, 1, 0.9):.1f}" for sigma in sigmas]
    takes = [str(blocks_needed(0.03, sigma, 1, 0.9)) for sigma in sigmas]
    assert assumed_power(planned(), 8) == (
        "the noise here is not known (no earlier campaign with these sizes and repetitions); on a usual machine, "
        "8 blocks find "
        f"differences of {finds[1]} % (quiet: {finds[0]} %, restless: {finds[2]} %), and 3 % takes {takes[1]} blocks "
        f"(quiet: {takes[0]}, restless: {takes[2]}), with 90 % power among 1 comparison"
    )
