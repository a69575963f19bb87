"""Every chart follows Vega-Lite's schema: a page is made without that check."""

import math
import random
from pathlib import Path
from typing import Any

import altair as alt
import pytest
import reports
from altair.utils.schemapi import validate_jsonschema
from jsonschema import ValidationError
from test_over_time import history, page_of

from gpubench.report.campaign_page import campaign_page
from gpubench.report.charts.bisection import SHAPES, along_list, restored
from gpubench.report.contents import verdict_answer
from gpubench.report.other_pages import sides_page
from gpubench.report.page import Page
from gpubench.report.sections import Chart, Spec
from gpubench.report.svg import svg
from gpubench.results.curves import curves
from gpubench.results.results import Results
from gpubench.results.sides import two_sides
from gpubench.stats.bisection import PointClass
from gpubench.stats.data import CellRun
from gpubench.stats.margin import Margin
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


def row(label: str, word: str, *figures: float | None, left_out: int = 0) -> dict[str, Any]:
    return {
        "label": label,
        "class": word,
        **dict(zip(("effect", "low", "high"), figures, strict=True)),
        "left_out": left_out,
    }


POINTS = [
    row("1.16.0", "end", 0.0, None, None),
    row("1.17.0", "like the fast end", 1.0, -2.0, 4.0),
    row("1.18.0", "like the slow end", 50.0, 45.0, 900.0, left_out=3),
    row("1.20.0", "failed or skipped", None, None, None),
    row("1.22.0", "end", 52.0, 47.0, 60.0),
]


def drawn(spec: Spec) -> str:
    valid(spec)
    return svg(Chart("a", "a", lambda: spec))


def arrows(picture: str) -> int:
    """How many intervals of a picture go on beyond its edge: paths of Vega's symbol ``arrow``."""
    return picture.count("M-1.152,8.062L1.152,8.062L1.152,-1.008L3.225,-1.008L0,-8.062")


def test_points_of_a_search_have_their_labels_the_change_and_what_lies_between() -> None:
    picture = drawn(along_list(POINTS, [{"low": 1, "high": 2, "text": "+49 %"}], Margin(0.1), "1.16.0", "points"))
    for text in ("1.16.0", "1.17.0", "1.18.0", "1.20.0", "1.22.0", "+49 %", "3 more", "time against 1.16.0"):
        assert f">{text}<" in picture
    assert ">+900 %<" not in picture  # one interval doesn't press the others flat
    assert arrows(picture) == 1  # and says that it goes on


def test_each_class_of_points_has_its_own_shape_and_colour() -> None:
    assert {str(word) for word in PointClass} - {str(PointClass.FAILED)} == {*SHAPES} - {"end"}
    assert len({shape for shape, _ in SHAPES.values()}) == len({colour for _, colour in SHAPES.values()}) == len(SHAPES)


def test_shares_stand_below_what_they_are_shares_of() -> None:
    rows = [
        {"whole": "Share of one", "name": "all 2 settings", "share": 98.0, "low": 90.0, "high": 106.0, "named": False},
        {"whole": "Share of another", "name": "UCX_A", "share": 101.0, "low": None, "high": None, "named": True},
    ]
    picture = drawn(restored(rows, 20.0, "restored"))
    assert picture.index(">Share of one<") < picture.index(">Share of another<")
    assert ">all 2 settings<" in picture
    assert picture.count("var(--regression)") == 1
    assert arrows(picture) == 0
    wide = [{**rows[0], "low": -90.0, "high": 199.0}, {**rows[1], "share": 170.0}]
    assert arrows(drawn(restored(wide, 20.0, "restored"))) == 3
