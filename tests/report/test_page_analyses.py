"""The page's section on scaling: there with its numbers, or not there at all."""

import re
from pathlib import Path

import pytest
import reports
from campaign_builder import Writer, begin, make_plan, variant

from gpubench.report.campaign_page import campaign_page
from gpubench.report.charts.curves import efficiency
from gpubench.report.scaling import scaling_section
from gpubench.report.sections import Spec, text_lines
from gpubench.results.curves import curves
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.results.loading import results_of
from gpubench.store.campaign import Campaign

Made = tuple[Campaign, JudgedCampaign, str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    campaign = reports.scaled(tmp_path_factory.mktemp("c") / "scaled")
    inputs = reports.collect(campaign)
    return campaign, inputs, reports.page_html(inputs).decode()


def section(page: str, name: str) -> str:
    found = re.search(rf'<section [^>]*id="{name}">.*?</section>', page, re.S)
    return found[0] if found else ""


def specs(inputs: JudgedCampaign) -> dict[str, Spec]:
    return {chart.anchor: chart.spec for chart in campaign_page(inputs).charts()}


def test_efficiency_of_every_variant_at_every_size_with_its_interval(made: Made) -> None:
    _, inputs, page = made
    merge = next(one for one in inputs.plan.workloads if one.name == "merge")
    spec = specs(inputs)[f"scaling-{merge.params_id}"]
    rows = [row for row in spec["data"]["values"] if row["variant"] == "1.17.0"]
    assert [row["units"] for row in rows] == [2, 4, 8]
    assert rows[0]["value"] == rows[0]["low"] == rows[0]["high"] == 100
    assert rows[2]["low"] < rows[2]["value"] < rows[2]["high"]
    assert rows[2]["value"] == pytest.approx(100 / reports.SHARES[4], rel=0.05)
    text = section(page, "scaling")
    assert f"{rows[2]['value']:.3g} % [{rows[2]['low']:.3g}, {rows[2]['high']:.3g}]" in text
    assert f'href="#samples-{merge.params_id}-4-2"' in text
    # A message's time says nothing of scaling: numbers, and no chart.
    message = inputs.plan.workloads[0].params_id
    assert f'id="scaling-{message}"' in text
    assert f"scaling-{message}" not in specs(inputs)
    of_message = text[text.index(f'id="scaling-{message}"') :].partition("</table>")[0]
    assert of_message.count('<td class="number">-</td><td class="number">-</td>') == of_message.count('scope="row"') > 0


def test_a_campaign_without_the_data_has_no_section_on_scaling(tmp_path: Path) -> None:
    for build in (reports.story, reports.empty):
        page = reports.page_html(reports.collect(build(tmp_path / build.__name__))).decode()
        assert section(page, "scaling") == ""
        assert 'href="#scaling"' not in page


def test_one_run_at_each_size_has_no_band_and_no_zero(tmp_path: Path) -> None:
    inputs = reports.collect(reports.scaled(tmp_path / "c", blocks=1))
    drawn = [spec for name, spec in specs(inputs).items() if name.startswith("scaling-")]
    assert drawn
    for spec in drawn:
        rows = spec["data"]["values"]
        assert {row["units"] for row in rows if row["low"] is not None} == {2}
        assert {row["units"] for row in rows} == {2, 4, 8}
        band = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "area")
        assert band["transform"] == [{"filter": "isValid(datum.low)"}]


SUITE = (("merge", {"rows_per_worker": 200_000, "frac_match": 0.3}, 3, 0.41),)
LEAST = {"1.17.0": 1, "1.18.1": 2, "1.19.0": 4}
"""The fewest nodes on which each variant runs."""


def test_a_curve_that_begins_at_another_size_says_so_and_one_size_is_not_drawn_as_100_percent(tmp_path: Path) -> None:
    plan = make_plan(tuple(map(variant, LEAST)), nodes=(1, 2, 4), blocks=3, suite=SUITE)
    writer = Writer(begin(tmp_path / "c", plan))
    for job, block, run in writer.campaign.rows():
        status = "ok" if job.nodes >= LEAST[run.variant] else "failed"
        writer.write(job, block, run, status=status, reason="" if status == "ok" else "out of memory")
    measured = curves(results_of(writer.campaign))
    said = [line.strip() for line in text_lines(scaling_section("c", measured)) if "its own smallest" in line]
    assert said == ["1.18.1 has no run at the smallest size: its figures are against 2 x 2, its own smallest"]
    drawn = efficiency(measured, [*LEAST], "merge")["data"]["values"]
    assert [(row["variant"], row["units"]) for row in drawn] == [
        *(("1.17.0", 2 * nodes) for nodes in (1, 2, 4)),
        *(("1.18.1", 2 * nodes) for nodes in (2, 4)),
    ]
