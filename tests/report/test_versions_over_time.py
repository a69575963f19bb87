"""What the page over time says of versions, and with which sign."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import random
import re
import statistics

import pytest
import reports
import scipy.stats

from gpubench.report.history import (
    CONDITION,
    change_rows,
    changes_section,
    compare_versions,
    version_key,
)
from gpubench.report.other_pages import over_time, trend_page
from gpubench.report.page import Page, html
from gpubench.report.pictures import svg
from gpubench.report.sections import Chart
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
    return trend_page([ResultHistory("campaign", "c", "", observed)], find(observed, 1))


def test_the_first_sentence_names_the_largest_difference_and_leaves_single_dates_out() -> None:
    compared = compare_versions(history())
    assert compared.baseline == "1.9.0"
    said = (
        r"Largest differences of mean times from 1\.9\.0, which are no verdicts: "
        r"1\.12\.0 is (\S+) % slower in merge on 128 workers \(10 dates\)\."
    )
    found = re.fullmatch(said, compared.sentence)
    assert found
    assert abs(float(found[1]) - 25) < 0.2
    page = html(page_of(history()), reports.TEMPLATES).decode()
    assert page.index(
        "<h1>Largest differences of mean times from 1.9.0, which are no verdicts: 1.12.0 is "
    ) < page.index('id="versions"')
    assert "The largest differences above are those of 5 dates or more." in page


def test_the_chance_of_a_false_alarm_is_never_shown_without_its_condition() -> None:
    searched, short = (find([figure("1.9.0", date, 8, 1.0) for date in dates], 1) for dates in (DATES, DATES[:5]))
    assert "independent" in CONDITION
    assert CONDITION in "\n".join(map(str, changes_section(searched).parts[-1].lines))
    assert CONDITION not in "\n".join(map(str, changes_section(short).parts[-1].lines))
    assert CONDITION in html(page_of(history()), reports.TEMPLATES).decode()


def test_half_a_year_of_six_versions_at_five_sizes_is_drawn_without_a_script() -> None:
    """As the history of Draco has it, for two workloads."""
    dates = [DATES[0] + dt.timedelta(weeks=number) for number in range(28)]
    observed = [
        figure(f"1.{minor}.0", date, 8 * 2**size, 1.0, name)
        for name in ("merge", "shuffle")
        for minor in range(9, 15)
        for size in range(5)
        for date in dates[(minor - 9) * 3 :]
    ]
    page = html(page_of(observed), reports.TEMPLATES).decode()
    assert page.count("<svg xmlns=") == page.count('class="chart"') == 4
    assert len(page) < 1_500_000


def test_a_difference_is_the_mean_over_the_dates_that_both_versions_have_as_in_a_verdict() -> None:
    by_cell = {(each.variant, each.size[0]): each for each in compare_versions(history()).differences}
    assert set(by_cell) == {("1.10.0", 8), *(("1.12.0", size) for size in SIZES)}
    slow = by_cell["1.12.0", 128]
    logs = {
        version: [one.log_s for one in history() if (one.variant, one.workers) == (version, 128) and one.date in shared]
        for shared in [DATES[::2]]
        for version in ("1.9.0", "1.12.0")
    }
    differences = [after - before for before, after in zip(*logs.values(), strict=True)]
    mean, half = statistics.fmean(differences), scipy.stats.t.ppf(0.975, 9) * scipy.stats.sem(differences)
    ends = [math.expm1(mean + way * half) for way in (-1, 0, 1)]
    assert [slow.low, slow.effect, slow.high] == pytest.approx(ends, rel=1e-9)
    assert slow.dates == 10
    alone = by_cell["1.10.0", 8]
    assert alone.low == alone.effect == alone.high


def test_versions_and_sizes_are_facets_in_the_order_of_their_numbers_and_up_is_slower() -> None:
    chart = next(one for one in page_of(history()).charts() if one.anchor == "versions-0")
    spec = chart.spec
    assert chart.name == "versions merge"
    assert spec["facet"]["sort"] == ["1.10.0", "1.12.0"]
    _, interval, dot, _ = (layer["encoding"] for layer in spec["spec"]["layer"])
    assert dot["x"]["sort"] == ["8", "16", "128"]
    rows = {(row["variant"], row["size"]): row for row in spec["data"]["values"]}
    assert rows["1.12.0", "128"]["effect"] > 24
    assert (interval["y"]["field"], interval["y2"]["field"], dot["y"]["field"]) == ("low", "high", "effect")
    assert "reverse" not in dot["y"].get("scale", {})
    # A single date far above neither stretches the picture nor vanishes from it.
    assert rows["1.10.0", "8"]["beyond"].startswith("+299.5")
    assert 60 > rows["1.10.0", "8"]["effect"] > rows["1.12.0", "128"]["high"]
    drawn = svg(chart)
    assert drawn.index(">1.10.0<") < drawn.index(">1.12.0<")
    assert "+299.5" in drawn


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
    series = find(observed, 1)
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


def test_one_version_has_nothing_to_be_compared_with() -> None:
    alone = [one for one in history() if one.variant == "1.9.0"]
    assert compare_versions(alone).sentence == ""
    page = html(page_of(alone), reports.TEMPLATES).decode()
    assert "<h1>20 dates, 2026-01-05 to 2026-05-18: 1.9.0</h1>" in page
    assert 'id="versions"' not in page


def test_numbers_in_names_are_numbers() -> None:
    found = sorted(["1.12.0", "1.9.0", "master", "1.12.0rc1"], key=version_key)
    assert found == ["1.9.0", "1.12.0", "1.12.0rc1", "master"]
    slower = [
        figure("1.9.0", date, workers, 1.5 if number >= 10 else 1.0)
        for number, date in enumerate(DATES)
        for workers in SIZES
    ]
    rows = change_rows(find(slower, 1))
    assert [row[0].split()[1] for row in rows if row[1] == str(DATES[10])] == ["8", "16", "128"]
