"""The page of two sides in a real headless Chromium, opened from ``file://``."""

from __future__ import annotations

import random
from pathlib import Path

import browser
import pytest
import reports

from gpubench.history.sides import SideCell, SideLayout, match
from gpubench.report.other_pages import sides_page
from gpubench.report.page import html
from gpubench.report.sides import UNPAIRED, Side, SideBySide, judge_sides
from gpubench.stats.settings import VerdictSettings

pytestmark = pytest.mark.system

QUESTION = (("workload", "merge"), ("backend", "dask"), ("params", "{}"))


def cells(slower: float, memory: int) -> list[SideCell]:
    """A merge on 2 to 16 workers; ``memory`` is that of the largest."""
    noise = random.Random(f"{slower}")
    found = []
    for units in (2, 4, 8, 16):
        logs = tuple(noise.gauss(slower * units / 16, 0.01) for _ in range(6))
        layout = SideLayout(units, 2, 1, memory if units == 16 else 2**30)
        found.append(SideCell(QUESTION, units, layout, "tcp", "cpu", "weak", logs, logs))
    return found


def two_sides() -> SideBySide:
    sides = [
        Side("A", "campaign", "on-slurm", "1.17.0", cells(0.0, 2**30)),
        Side("B", "campaign", "on-kubernetes", "1.17.0", cells(0.3, 2**31)),
    ]
    pairs, lone = match(sides[0].cells, sides[1].cells)
    (verdicts,) = judge_sides([(*sides, pairs)], VerdictSettings())
    return SideBySide(*sides, pairs, lone, verdicts, [UNPAIRED], VerdictSettings())


def test_both_curves_and_every_verdict_are_there_in_both_schemes_and_on_a_telephone(tmp_path: Path) -> None:
    path = tmp_path / "two sides.html"
    path.write_bytes(html(sides_page(two_sides()), reports.TEMPLATES))
    with browser.chromium() as page:
        for options in ({}, {"dark": True}, {"width": 375, "mobile": True}):
            page.open(path.as_uri(), **options)
            assert (page.console, page.errors, set(page.requests)) == ([], [], {path.as_uri()})
            assert page.evaluate("document.querySelectorAll('#chart-sides-0 .mark-line.role-mark path').length") == 4
            assert page.evaluate("document.querySelectorAll('#chart-sides-0 .mark-symbol.role-mark path').length") == 16
        assert page.evaluate("document.documentElement.scrollWidth") == 375
        words = page.evaluate("document.getElementById('curves').textContent")
        assert "layout: 2 x 1 x 1.0 GiB against 2 x 1 x 2.0 GiB" in words
        assert words.count("regression") == 3
