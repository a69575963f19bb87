"""Change points over dates, and what is said to have changed there."""

import dataclasses
import datetime as dt
import random
from collections.abc import Mapping

from gpubench.report.history import searched_lines
from gpubench.results.changes import find
from gpubench.results.figures import Figure
from gpubench.results.results import RunCircumstances

START = dt.date(2026, 1, 5)


def day(number: int) -> dt.date:
    return START + dt.timedelta(weeks=number)


def history(
    variant: str,
    step: float = 0.0,
    *,
    at: int = 10,
    count: int = 20,
    known: Mapping[str, str] | None = None,
    cell: str = "merge",
) -> list[Figure]:
    """A figure a week, one per cent of noise, and a step before which ``dask`` was another."""
    noise = random.Random(f"{variant}{cell}")
    return [
        Figure(
            (("workload", cell),),
            variant,
            day(number),
            "somewhere",
            (step if number >= at else 0.0) + noise.gauss(0, 0.01),
            1,
            circumstances=RunCircumstances(
                {"host": "a", **(known or {}), "dask": "2" if number >= at else "1"} if known is not None else {}
            ),
        )
        for number in range(count)
    ]


def test_a_change_is_dated_and_annotated_with_what_changed_there() -> None:
    (series,) = find(history("1.22.0", 0.1, known={}))
    (change,) = series.changes
    assert (change.before, change.at) == (day(9), day(10))
    assert change.fields == ("dask 1 → 2",)
    assert 0.09 < change.effect < 0.12


def test_where_nothing_was_recorded_that_is_said_and_not_that_nothing_changed() -> None:
    (series,) = find(history("1.22.0", 0.1))
    assert [(one.unknown, one.fields) for one in series.changes] == [(True, ())]


def test_a_bump_too_short_for_a_test_is_listed_as_unusual_days() -> None:
    days = history("1.22.0")
    bumped = [
        dataclasses.replace(one, log_s=one.log_s + 0.3) if number in (6, 7) else one for number, one in enumerate(days)
    ]
    (series,) = find(bumped)
    assert series.changes == ()
    assert [date for date, _ in series.unusual] == [day(6), day(7)]
    assert all(0.28 < off < 0.42 for _, off in series.unusual)


def test_changes_of_other_series_at_the_same_time_are_counted() -> None:
    found = find([*history("a", 0.1), *history("b", 0.1), *history("a", 0.1, at=15, cell="tasks")])
    assert [[one.others for one in series.changes] for series in found] == [[1], [1], [0]]


def test_a_history_too_short_to_search_is_told_apart_from_one_without_change() -> None:
    short, long = find([*history("a", count=7), *history("b")])
    assert (short.searched, long.searched, long.changes) == (False, True, ())


def test_figures_of_a_date_that_has_a_later_one_are_counted() -> None:
    once, again = history("a", 0.1), history("a", 0.1, count=3)
    (series,) = find([*once, *(dataclasses.replace(one, source="later", log_s=1.0) for one in again)])
    assert (len(series.figures), series.left_out) == (20, 3)
    assert [figure.source for figure in series.figures[:4]] == ["later"] * 3 + ["somewhere"]
    assert list(searched_lines([series]))[-1].endswith("the last that was read counts: 3 others aren't searched")
    assert not any("of one date" in line for line in searched_lines(find(once)))
