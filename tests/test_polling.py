"""One loop waits for whatever nobody announces."""

from __future__ import annotations

import time

import pytest

from gpubench.polling import poll_until


class Pauses(list[float]):
    """Stands for time: a pause passes at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        monkeypatch.setattr(time, "sleep", self.append)
        monkeypatch.setattr(time, "monotonic", lambda: sum(self))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    return Pauses(monkeypatch)


def test_an_event_that_is_there_already_costs_no_pause(pauses: Pauses) -> None:
    assert poll_until(lambda: "file", interval_s=1, timeout_s=0) == "file"
    assert pauses == []


def test_the_value_that_brought_the_event_is_returned(pauses: Pauses) -> None:
    values = iter([1, 2, 3, 4])
    assert poll_until(lambda: next(values), lambda value: value == 3, interval_s=0.5) == 3
    assert pauses == [0.5, 0.5]


def test_when_the_time_is_over_the_last_value_tells_that_nothing_came(pauses: Pauses) -> None:
    looks: list[float] = []

    def read() -> list[float]:
        looks.append(sum(pauses))
        return []

    assert poll_until(read, interval_s=2, timeout_s=5) == []
    assert looks == [0, 2, 4, 6]  # one look behind the end: what came during the last pause counts


def test_intervals_grow_up_to_the_longest(pauses: Pauses) -> None:
    values = iter([False] * 5 + [True])
    assert poll_until(lambda: next(values), interval_s=1, growth=2, longest_s=5)
    assert pauses == [1, 2, 4, 5, 5]


def test_an_error_of_the_look_ends_the_wait(pauses: Pauses) -> None:
    def read() -> bool:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        poll_until(read, interval_s=1)
    assert pauses == []
