"""Asking again until something is there."""

import itertools
import math
import time

import pytest

from gpubench.node.workloads import clock
from gpubench.node.workloads.clock import poll_until


def test_what_is_there_is_returned_also_past_the_deadline_and_asked_for_once() -> None:
    asked: list[int] = []
    assert poll_until(lambda: asked.append(1) or "there", time.monotonic() - 1, 10.0) == "there"  # type: ignore[func-returns-value]
    assert asked == [1]


def test_it_is_asked_for_until_it_is_there() -> None:
    numbers = itertools.count()
    assert poll_until(lambda: next(numbers) == 3, math.inf, 0.001)
    assert next(numbers) == 4


def test_past_the_deadline_the_last_answer_is_returned() -> None:
    assert poll_until(lambda: 0, time.monotonic() + 0.02, 0.001) == 0
    assert poll_until(lambda: None, time.monotonic() + 0.02, 0.001) is None


@pytest.mark.parametrize("jitter", [False, True])
def test_pauses_grow_to_the_longest_and_vary_by_half_with_jitter(monkeypatch: pytest.MonkeyPatch, jitter: bool) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(clock.time, "sleep", pauses.append)
    poll_until(lambda: len(pauses) == 20, math.inf, 1.0, longest_s=3.0, jitter=jitter)
    planned = [1.0, 1.5, 2.25, *[3.0] * 17]
    if jitter:
        assert len(set(pauses)) == 20
        assert all(0.5 <= pause / full <= 1.5 for pause, full in zip(pauses, planned, strict=True))
    else:
        assert pauses == planned
