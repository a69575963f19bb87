"""Charts of a search: which marks they have, and that they follow Vega-Lite's schema."""

from __future__ import annotations

from typing import Any

import altair as alt
from altair.utils.schemapi import validate_jsonschema

from gpubench.report.charts.bisection import SHAPES, along_list, restored
from gpubench.report.sections import Chart, Spec
from gpubench.report.svg import svg
from gpubench.stats.bisection import PointClass
from gpubench.stats.margin import Margin


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
    validate_jsonschema(spec, alt.load_schema())
    return svg(Chart("a", "a", lambda: spec))


def test_points_of_a_search_have_their_labels_the_change_and_what_lies_between() -> None:
    picture = drawn(along_list(POINTS, [{"low": 1, "high": 2, "text": "+49 %"}], Margin(0.1), "1.16.0", "points"))
    for text in ("1.16.0", "1.17.0", "1.18.0", "1.20.0", "1.22.0", "+49 %", "3 more", "time against 1.16.0"):
        assert f">{text}<" in picture
    assert ">+900 %<" not in picture  # one interval doesn't press the others flat


def test_without_a_named_change_none_is_marked() -> None:
    change = {"low": 1, "high": 2, "text": "x"}
    marked, plain = (drawn(along_list(POINTS, changes, Margin(0.1), "a", "points")) for changes in ([change], []))
    assert marked.count("var(--regression)") > plain.count("var(--regression)") > 0


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
