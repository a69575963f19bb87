"""The page over time in a real headless Chromium, opened from ``file://``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import browser
import pytest
import reports

from gpubench.report.other_pages import trend_page
from gpubench.report.page import html
from gpubench.results.changes import find
from gpubench.results.figures import Figure
from gpubench.results.history import ResultHistory

pytestmark = [pytest.mark.system, pytest.mark.long]

DATES = [dt.date(2026, 1, 5) + dt.timedelta(weeks=number) for number in range(20)]


@pytest.fixture(scope="module")
def page() -> Iterator[browser.Page]:
    with browser.chromium() as page:
        yield page


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions on two sizes; one slows down half way, the other has failed twice."""
    observed = []
    for workers in (8, 16):
        key = (("workload", "merge"), ("backend", "dask"), ("workers", workers))
        for version in ("1.17.0", "1.19.0"):
            for number, date in enumerate(DATES):
                if version == "1.19.0" and number in (3, 4):
                    continue
                slower = 0.3 if version == "1.17.0" and number >= 10 else 0.0
                observed.append(
                    Figure(key, version, date, "c", slower + 0.001 * (number * 7 % 5), 4, 0.01, workers, 10**9)
                )
    made = trend_page([ResultHistory("campaign", "c", "of a test", observed)], find(observed, 1))
    path = tmp_path_factory.mktemp("history") / "over time.html"
    path.write_bytes(html(made, reports.TEMPLATES))
    return path


def test_it_renders_without_a_word_on_the_console_and_without_the_network(page: browser.Page, report: Path) -> None:
    page.requests.clear()
    for options in ({}, {"dark": True}, {"width": 375, "mobile": True}):
        page.open(report.as_uri(), **options)
        assert (page.console, page.errors) == ([], [])
    assert set(page.requests) == {report.as_uri()}


def test_sizes_stand_side_by_side_and_the_page_is_not_wider_than_a_telephone(page: browser.Page, report: Path) -> None:
    texts = "[...document.querySelectorAll('#chart-over-time-0 svg text')]"
    places = f"{texts}.filter((one) => one.textContent.endsWith('workers'))"
    lefts = f"{places}.map((one) => Math.round(one.getBoundingClientRect().left))"
    page.open(report.as_uri())
    assert len(set(page.evaluate(lefts))) == 2
    page.open(report.as_uri(), width=375, height=800, mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 375


def test_changes_are_drawn(page: browser.Page, report: Path) -> None:
    page.open(report.as_uri())
    here = "document.querySelectorAll('#chart-over-time-0 {}').length"
    assert page.evaluate(here.format(".mark-rule.role-mark line[stroke-dasharray]")) == 2
    assert page.evaluate(here.format(".mark-line.role-mark path")) == 4
