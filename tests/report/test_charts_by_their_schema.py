"""Every chart follows Vega-Lite's schema: a page is made without that check."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import altair as alt
import pytest
import reports
from altair.utils.schemapi import validate_jsonschema
from jsonschema import ValidationError
from test_over_time import history, page_of

from gpubench.report.campaign_page import campaign_page
from gpubench.report.contents import verdict_answer
from gpubench.report.other_pages import sides_page
from gpubench.report.page import Page, html
from gpubench.report.sections import Spec
from gpubench.results.curves import curves
from gpubench.results.results import Results
from gpubench.results.sides import two_sides
from gpubench.stats.data import CellRun
from gpubench.stats.question import Question


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


def kinds(page: Page) -> dict[str, Spec]:
    """A chart of every kind that the page has."""
    return {one.anchor.partition("-")[0]: one.spec for one in page.charts()}


def valid(spec: Spec) -> None:
    validate_jsonschema(spec, alt.load_schema())


def test_charts_of_a_campaign(tmp_path: Path) -> None:
    found = kinds(campaign_page(reports.collect(reports.scaled(tmp_path / "scaled", blocks=2))))
    assert set(found) == {"forest", "samples", "scaling"}
    for spec in found.values():
        valid(spec)
    with pytest.raises(ValidationError):
        valid({**found["samples"], "layer": [{"mark": "rulers"}]})


def test_charts_over_time_and_of_two_sides() -> None:
    found = kinds(page_of(history())) | kinds(page_of_two_sides())
    assert set(found) == {"forest", "over", "scaling"}
    for spec in found.values():
        valid(spec)


def test_a_page_of_two_sides_has_a_verdict_at_each_size_and_says_where_the_layouts_differ() -> None:
    page = html(page_of_two_sides(), reports.TEMPLATES).decode()
    assert "layout: 2 x 1 x memory not recorded against 4 x 1 x memory not recorded" in page
    table = page.partition('id="verdict-table"')[2].partition("</table>")[0]
    assert len(re.findall(r'class="verdict regression"', table)) == 3
