"""Every chart follows Vega-Lite's schema: a page is made without that check."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import pytest
import reports
from altair.utils.schemapi import validate_jsonschema
from jsonschema import ValidationError
from test_sides_in_chromium import page_of_two_sides
from test_versions_over_time import history, page_of

from gpubench.report.campaign_page import campaign_page
from gpubench.report.page import Page
from gpubench.report.sections import Spec


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
    assert set(found) == {"forest", "over", "versions", "scaling"}
    for spec in found.values():
        valid(spec)
