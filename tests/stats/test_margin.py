"""The margin: one number with its band in logs, and when an interval lies beyond it."""

from __future__ import annotations

import json
import math

import pytest

from gpubench.stats.margin import Margin
from gpubench.stats.settings import VerdictSettings


def test_the_region_is_symmetric_in_logs():
    margin = Margin(0.03)
    assert margin.log == pytest.approx(math.log(1.03))
    assert margin.half.log == math.log1p(0.015)
    assert margin.percent == "3 %"
    assert margin.faster == pytest.approx(math.expm1(-margin.log))
    assert [Margin(size).ends for size in (0.03, 0.1, 0.3)] == ["-2.9 to +3 %", "-9.1 to +10 %", "-23 to +30 %"]


@pytest.mark.parametrize(
    ("word", "low", "high", "exceeded"),
    [
        ("regression", 0.031, 0.05, True),
        ("regression", 0.029, 0.05, False),
        ("improvement", -0.05, 1 / 1.031 - 1, True),
        ("improvement", -0.05, 1 / 1.029 - 1, False),
        ("improvement", 0.031, 0.05, False),
        ("equivalent", 0.031, 0.05, False),
        ("regression", None, None, False),
        ("improvement", -1.0, math.inf, False),
    ],
)
def test_an_interval_exceeds_it_on_the_verdicts_side_only(word, low, high, exceeded):
    assert Margin(0.03).is_exceeded(word, low, high) is exceeded


@pytest.mark.parametrize(
    ("low", "high", "slower", "contained", "faster"),
    [
        (0.031, 0.05, True, False, False),
        (-0.02, 0.02, False, True, False),
        (-math.log1p(0.03), math.log1p(0.03), False, True, False),
        (-0.031, 0.02, False, False, False),
        (-0.02, 0.031, False, False, False),
        (-0.05, -0.031, False, False, True),
    ],
)
def test_an_interval_of_logs_lies_beyond_it_on_one_side_or_within_it_or_neither(low, high, slower, contained, faster):
    margin = Margin(0.03)
    assert (margin.is_slower(low), margin.contains(low, high), margin.is_faster(high)) == (slower, contained, faster)


def test_settings_take_any_number_and_write_it_as_it_was():
    settings = VerdictSettings(margin=0.05)
    assert settings.margin.log == math.log1p(0.05)
    assert json.dumps(settings.margin) == "0.05"
