"""What the page over time says of versions, and with which sign."""

import dataclasses
import datetime as dt
import math
import random
import re

import reports

from gpubench.report.history import (
    CONDITION,
    change_rows,
    changes_section,
)
from gpubench.report.other_pages import trend_page
from gpubench.report.over_time import over_time
from gpubench.report.page import Page, html
from gpubench.report.sections import Chart
from gpubench.report.svg import svg
from gpubench.results.changes import find
from gpubench.results.figures import Figure
from gpubench.results.history import ResultHistory

DATES = [dt.date(2026, 1, 5) + dt.timedelta(weeks=number) for number in range(20)]
SIZES = (8, 16, 128)


def figure(version: str, date: dt.date, workers: int, slower: float, name: str = "merge") -> Figure:
    key = (("workload", name), ("backend", "dask"), ("workers", workers))
    noise = random.Random(f"{version}{date}{workers}{name}").gauss(0, 0.001)
    return Figure(key, version, date, "c", math.log(2.0 * slower) + noise, 4, 0.01, workers, None)


def history() -> list[Figure]:
    """1.9.0 on all dates; 1.12.0 on half, 20 % slower on 128 workers; 1.10.0 on one date, a quarter as fast."""
    found = [figure("1.9.0", date, workers, 1.0) for date in DATES for workers in SIZES]
    found += [figure("1.12.0", date, size, 1.25 if size == 128 else 1.0) for date in DATES[::2] for size in SIZES]
    return [*found, figure("1.10.0", DATES[3], 8, 4.0)]


def page_of(observed: list[Figure]) -> Page:
    return trend_page([ResultHistory("campaign", "c", "", observed)], find(observed))


def test_the_chance_of_a_false_alarm_is_never_shown_without_its_condition() -> None:
    searched, short = (find([figure("1.9.0", date, 8, 1.0) for date in dates]) for dates in (DATES, DATES[:5]))
    assert "independent" in CONDITION
    assert CONDITION in "\n".join(map(str, changes_section(searched).parts[-1].lines))
    assert CONDITION not in "\n".join(map(str, changes_section(short).parts[-1].lines))
    assert CONDITION in html(page_of(history()), reports.TEMPLATES).decode()


def test_seconds_are_drawn_upside_down_so_that_up_is_faster_and_rates_are_not() -> None:
    (seconds,) = over_time(history(), [])
    rated = [Figure(one.key, one.variant, one.date, "c", one.log_s, 4, 0.01, one.workers, 10**9) for one in history()]
    (rates,) = over_time(rated, [])

    def reversed_(chart: Chart) -> set[bool]:
        layers = chart.spec["spec"]["layer"]
        return {y["scale"]["reverse"] for layer in layers if (y := layer["encoding"].get("y"))}

    assert reversed_(seconds.charts[0]) == {True}
    assert seconds.heading.endswith(", seconds, axis reversed")
    assert reversed_(rates.charts[0]) == {False}
    for part, is_down in ((seconds, True), (rates, False)):
        label = r'<text text-anchor="end" transform="translate\([^,]+,([0-9.]+)\)"[^>]*>([0-9.]+)<'
        (y0, first), (y1, second), *_ = re.findall(label, svg(part.charts[0]))
        assert ((float(y1) - float(y0)) * (float(second) - float(first)) > 0) == is_down


def test_changes_and_unusual_days_are_marked_at_their_figures_and_wide_intervals_are_cut() -> None:
    observed = [one for one in history() if one.variant == "1.9.0"]
    at = next(number for number, one in enumerate(observed) if (one.date, one.workers) == (DATES[7], 16))
    observed[at] = dataclasses.replace(figure("1.9.0", DATES[7], 16, 1.5), se=2.0)
    slower = [
        dataclasses.replace(one, log_s=one.log_s + 0.5)
        for one in observed
        if one.workers == 8 and one.date >= DATES[12]
    ]
    observed = [*(one for one in observed if one.workers == 16 or (one.workers == 8 and one.date < DATES[12])), *slower]
    series = find(observed)
    (shown,) = over_time(observed, series)
    rows = shown.charts[0].spec["data"]["values"]
    (unusual,) = (row for row in rows if row["unusual"])
    assert (unusual["size"], unusual["variant"], unusual["date"]) == ("16 workers", "1.9.0", str(DATES[7]))
    changes = [(row["date"], row["change"]) for row in rows if row["change"] and row["size"] == "8 workers"]
    assert changes == [(str(DATES[12]), "slower")]
    values = [row["value"] for row in rows if row["size"] == "16 workers"]
    room = 0.4 * (max(values) - min(values))
    assert unusual["high"] == max(values) + room
    assert unusual["low"] == min(values) - room


def test_two_figures_of_a_day_are_both_drawn() -> None:
    first = [one for one in history() if (one.variant, one.workers) == ("1.9.0", 8)]
    second = [dataclasses.replace(one, source="d", log_s=one.log_s + 0.1) for one in first]
    (shown,) = over_time([*first, *second], [])
    assert len(shown.charts[0].spec["data"]["values"]) == 2 * len(DATES)


def test_numbers_in_names_are_numbers() -> None:
    slower = [
        figure("1.9.0", date, workers, 1.5 if number >= 10 else 1.0)
        for number, date in enumerate(DATES)
        for workers in SIZES
    ]
    rows = change_rows(find(slower))
    assert [row[0].split()[1] for row in rows if row[1] == str(DATES[10])] == ["8", "16", "128"]
