"""What is asked of results: what isn't named is as it was planned, and two plans that disagree are refused."""

import pytest

from gpubench.errors import UsageError
from gpubench.stats.question import Question
from gpubench.stats.settings import VerdictSettings
from tests.plan.requests_by_hand import plan as planned


def test_a_campaign_is_judged_as_planned_but_for_what_is_asked():
    plan = planned("a=1.17.0 b=1.19.0 c=1.20.0", margin=0.02)
    assert Question().settings(plan) == VerdictSettings(0.02)
    assert Question().comparisons(plan) == plan.comparisons
    other = Question(margin=0.1, baseline="b", candidate="a")
    assert other.settings(plan).margin == 0.1
    pairs = [(one.baseline, one.candidate) for one in other.comparisons(plan)]
    assert pairs == [("b", "a")] * 2 + [("a", "c")] * 2, "in place of its mirror image, before the others"


def test_a_variant_that_the_plan_lacks_is_refused():
    with pytest.raises(UsageError, match="no variant 'd'"):
        Question(candidate="d").comparisons(planned())


def test_the_baseline_is_no_candidate():
    with pytest.raises(UsageError, match="b is the baseline; name another --candidate"):
        Question(candidate="b").comparisons(planned("b=1.17.0 c=1.19.0"))


def test_two_plans_that_disagree_are_asked_about():
    with pytest.raises(UsageError, match="margin of 1 %, the other with 3 %; say which counts: --margin 1%"):
        Question().settings(planned(), planned(margin=0.01))
    assert Question(0.02).settings(planned(), planned(margin=0.01)) == VerdictSettings(0.02)
