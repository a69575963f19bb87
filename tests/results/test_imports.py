"""Dates stand for blocks where the source has them; where it has none, there is no verdict."""

import dataclasses
import datetime as dt
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gpubench.results.figures import figures
from gpubench.results.history import history
from gpubench.results.importers.base import Row
from gpubench.results.importers.directory import frame
from gpubench.results.imports import import_results
from gpubench.results.results import Results, judge
from gpubench.stats.question import Question
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict

START = dt.date(2022, 7, 11)


def rows(variant: str, factor: float = 1.0, dates: int = 10, **known: Any) -> list[Row]:
    """One mean a week, with days of their own that both versions share."""
    return [
        Row(
            file=f"{variant}.csv",
            line=number + 1,
            workload="merge",
            wall_s=(1 + 0.3 * (number % 3) + 0.001 * (len(variant) * number % 5)) * factor,
            extra={},
            run=f"{variant}{number}",
            identity=(variant, number, tuple(known.values())),
            variant=variant,
            **{"date": START + dt.timedelta(weeks=number), "workers": 8, "reps": 30, **known},
        )
        for number in range(dates)
    ]


def results(*given: Row, files: Sequence[str] = ()) -> Results:
    note = {"name": "x", "format": "table", "caution": "", "documents": {}, "sources": [{"file": one} for one in files]}
    return import_results(Path("x"), note, frame(given, None, "x"))


def verdicts(*given: Row) -> list[Verdict]:
    return judge(results(*given).family(Question(baseline="old")), VerdictSettings())


def test_a_difference_that_stands_on_every_shared_date_is_found_through_the_days_own_noise() -> None:
    (one,) = verdicts(*rows("old"), *rows("newer", 1.1))
    assert (one.verdict, one.blocks) == ("regression", 10)
    assert one.key == {"workload": "merge", "params": "{}", "workers": 8}


def test_only_dates_of_both_versions_make_a_pair() -> None:
    late = [dataclasses.replace(row, date=row.date + dt.timedelta(weeks=7)) for row in rows("newer") if row.date]
    assert verdicts(*rows("old"), *late)[0].blocks == 3


def test_without_dates_there_is_no_verdict_and_the_reason_says_so() -> None:
    (one,) = verdicts(*rows("old", date=None), *rows("newer", 2.0, date=None))
    assert (one.verdict, one.effect, one.more_blocks) == ("inconclusive", None, None)
    assert "no date is recorded" in one.reason


def test_versions_that_never_shared_a_date_are_not_compared() -> None:
    late = [dataclasses.replace(row, date=row.date + dt.timedelta(weeks=70)) for row in rows("newer", 2.0) if row.date]
    (one,) = verdicts(*rows("old"), *late)
    assert (one.verdict, one.reason) == ("inconclusive", "no data: no date on which both were measured, of 20")


def test_the_version_of_the_most_dates_is_compared_against_or_the_one_of_the_first_row() -> None:
    assert baseline(*rows("a", dates=4), *rows("b", dates=9)) == "b"
    assert baseline(*rows("b"), *rows("a"), files=["b.csv", "a.csv"]) == "b"
    assert baseline(*rows("b"), *rows("a"), files=["a.csv", "b.csv"]) == "a"


def baseline(*given: Row, files: Sequence[str] = ()) -> str:
    """The one that is compared against where none is named."""
    (comparison,) = results(*given, files=files).family(Question())
    return comparison.baseline


def test_neither_the_time_nor_the_day_of_a_row_is_a_circumstance_of_it() -> None:
    fields = {"seconds": "1.2", "join_ms": 1200.0, "wall_clock": "x", "timestamp": "2022-07-11", "dask": "2024.1"}
    (row,) = rows("old", dates=1)
    kept = results(dataclasses.replace(row, wall_s=1.2, extra=fields))
    assert kept.circumstances(kept.runs[0]).facts == {"dask": "2024.1"}


def test_only_a_source_that_says_so_has_means_of_repetitions() -> None:
    assert results(*rows("old")).has_means
    assert results(*rows("old", reps=None, wall_se=0.01)).has_means  # their number isn't recorded
    assert not results(*rows("old", reps=None)).has_means
    assert not results(*rows("old", reps=1)).has_means


def standard_error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values))


def test_the_error_of_a_figure_is_the_standard_error_of_the_times_of_its_day() -> None:
    (row,) = rows("old", dates=1)
    times = (1.0, 1.1, 1.3)
    (figure,) = figures(results(*(dataclasses.replace(row, line=line, wall_s=time) for line, time in enumerate(times))))
    assert figure.count == 3
    assert figure.se == pytest.approx(standard_error(times) / statistics.fmean(times))


def test_the_error_of_a_figure_of_several_blocks_is_the_standard_error_of_their_logs() -> None:
    made = results(*rows("old", dates=4))
    runs = [dataclasses.replace(run, date=made.runs[0].date) for run in made.runs]
    (figure,) = figures(dataclasses.replace(made, runs=runs))
    assert figure.count == 4
    assert figure.se == pytest.approx(standard_error([math.log(run.times[0]) for run in runs]))


def test_runs_without_a_version_or_a_date_are_left_out_of_a_history_and_counted() -> None:
    unknown = [*rows("", dates=3), *rows("old", dates=2, date=None)]
    assert history(results(*rows("old"), *unknown)).about.endswith("5 runs without a version or a date left out")
    assert "left out" not in history(results(*rows("old"))).about
