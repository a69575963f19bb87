"""The page of two sides in a real headless Chromium, opened from ``file://``."""

from __future__ import annotations

import math
import random
from pathlib import Path

import browser
import pytest
import reports

from gpubench.report.contents import verdict_answer
from gpubench.report.other_pages import sides_page
from gpubench.report.page import Page, html
from gpubench.results.curves import curves
from gpubench.results.results import Results
from gpubench.results.sides import two_sides
from gpubench.stats.data import CellRun
from gpubench.stats.question import Question

pytestmark = [pytest.mark.system, pytest.mark.long]


def side(name: str, slower: float, largest: int) -> Results:
    """A merge on 2 to 16 workers; ``largest`` workers on each node of the largest cluster, 2 on others."""
    noise = random.Random(f"{slower}")
    runs = [
        CellRun(
            f"{workers}-{block}",
            block,
            "1.17.0",
            None,
            None,
            (math.exp(noise.gauss(slower * workers / 16, 0.01)),),
            "ok",
            key=(
                *(("workload", "merge"), ("backend", "dask"), ("params", "{}"), ("protocol", "tcp"), ("device", "cpu")),
                *(("workers_per_node", largest if workers == 16 else 2), ("threads_per_worker", 1)),
                ("workers", workers),
            ),
            workers=workers,
        )
        for workers in (2, 4, 8, 16)
        for block in range(6)
    ]
    keys = list(dict.fromkeys(run.key for run in runs))
    return Results("campaign", name, Path(name), ["1.17.0"], keys, runs, lambda _question: [])


def page_of_two_sides() -> Page:
    sides = two_sides(side("on-slurm", 0.0, 2), side("on-kubernetes", 0.3, 4), Question())
    return sides_page(sides, verdict_answer(sides, Question()), curves(sides))


def test_both_curves_and_every_verdict_are_there_in_both_schemes_and_on_a_telephone(tmp_path: Path) -> None:
    path = tmp_path / "two sides.html"
    path.write_bytes(html(page_of_two_sides(), reports.TEMPLATES))
    with browser.chromium() as page:
        for options in ({}, {"dark": True}, {"width": 375, "mobile": True}):
            page.open(path.as_uri(), **options)
            assert (page.console, page.errors, set(page.requests)) == ([], [], {path.as_uri()})
            drawn = "document.querySelectorAll('#chart-scaling-0 .mark-{} path').length"
            assert page.evaluate(drawn.format("line.role-mark")) == 2
            assert page.evaluate(drawn.format("symbol.role-mark")) == 8
        assert page.evaluate("document.documentElement.scrollWidth") == 375
        words = page.evaluate("document.getElementById('verdicts').textContent")
        assert "layout: 2 x 1 x memory not recorded against 4 x 1 x memory not recorded" in words
        table = page.evaluate("document.getElementById('verdict-table').textContent")
        assert table.count("regression") == 3
