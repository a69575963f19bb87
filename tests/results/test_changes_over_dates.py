"""Change points over dates, and what is said to have changed there; what is missing, and why."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from collections.abc import Mapping
from pathlib import Path

from gpubench.model.known_issue import Conditions, KnownIssue, UcxRange
from gpubench.results import coverage
from gpubench.results.changes import find
from gpubench.results.coverage import Gap
from gpubench.results.figures import Figure
from gpubench.results.results import Results, RunCircumstances

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
    (series,) = find(history("1.22.0", 0.1, known={}), seed=1)
    (change,) = series.changes
    assert (change.before, change.at) == (day(9), day(10))
    assert change.fields == ("dask 1 → 2",)
    assert 0.09 < change.effect < 0.12


def test_where_nothing_was_recorded_that_is_said_and_not_that_nothing_changed() -> None:
    (series,) = find(history("1.22.0", 0.1), seed=1)
    assert [(one.unknown, one.fields) for one in series.changes] == [(True, ())]


def test_a_bump_too_short_for_a_test_is_listed_as_unusual_days() -> None:
    days = history("1.22.0")
    bumped = [
        dataclasses.replace(one, log_s=one.log_s + 0.3) if number in (6, 7) else one for number, one in enumerate(days)
    ]
    (series,) = find(bumped, seed=1)
    assert series.changes == ()
    assert [date for date, _ in series.unusual] == [day(6), day(7)]
    assert all(0.28 < off < 0.42 for _, off in series.unusual)


def test_changes_of_other_series_at_the_same_time_are_counted() -> None:
    found = find([*history("a", 0.1), *history("b", 0.1), *history("a", 0.1, at=15, cell="tasks")], seed=1)
    assert [[one.others for one in series.changes] for series in found] == [[1], [1], [0]]


def test_a_history_too_short_to_search_is_told_apart_from_one_without_change() -> None:
    short, long = find([*history("a", count=7), *history("b")], seed=1)
    assert (short.searched, long.searched, long.changes) == (False, True, ())


def test_every_hole_of_an_import_has_a_reason() -> None:
    rule = KnownIssue(
        name="x",
        action="skip",
        reason="it crashes",
        url="https://example.org",
        when=Conditions(ucx=UcxRange(min="1.13", max="1.13")),
    )
    old = history("1.12.0", count=10)
    new = [one for one in history("1.13.1", count=8) if one.date >= day(3) and one.date != day(5)]
    wide = [one for one in history("1.12.0", count=10, cell="wide") if one.date != day(4)]
    observed = [*old, *new, *wide]
    imported = Results("import", "x", Path("x"), (), (), (), lambda _question: [])
    found = coverage.coverage(imported, observed, coverage.gaps(imported, observed, [rule]))
    lines = {(dict(one.key)["workload"], one.variant): one for one in found}
    assert lines["merge", "1.12.0"].marks == "##########"
    assert lines["merge", "1.13.1"].marks == "...##.##.."
    reasons = dict(lines["merge", "1.13.1"].reasons)
    assert reasons == {
        f"before the first date of 1.13.1 ({day(3)})": 3,
        f"after the last date of 1.13.1 ({day(7)})": 2,
        "nothing of this version on that date; no reason recorded": 1,
    }
    assert dict(lines["wide", "1.12.0"].reasons) == {
        "other cells of this version have that date, this one hasn't; no reason recorded": 1
    }
    never = f"never measured in this cell; no reason recorded, perhaps {rule.why}"
    assert dict(lines["wide", "1.13.1"].reasons)[never] == 4
    for one in lines.values():
        assert one.measured + sum(count for _, count in one.reasons) == one.of


def gap(number: int, reason: str = "failed: out of memory") -> Gap:
    return Gap((("workload", "merge"),), "1.22.0", day(number), "failed", reason, 8, missing=2, of=6)


def test_what_is_missing_for_one_reason_on_dates_that_follow_each_other_is_one_span() -> None:
    found = coverage.spans(
        [gap(3), gap(1), gap(2), gap(7), gap(8, "failed: hangs")], [day(number) for number in range(9)]
    )
    assert [(one.dates, one.reason, one.missing, one.of) for one in found] == [
        ((day(1), day(2), day(3)), "failed: out of memory", 6, 18),
        ((day(7),), "failed: out of memory", 2, 6),
        ((day(8),), "failed: hangs", 2, 6),
    ]


def test_dates_on_which_nothing_of_a_history_was_measured_don_t_part_a_span() -> None:
    (one,) = coverage.spans([gap(1), gap(5)], [day(1), day(5)])
    assert one.dates == (day(1), day(5))
