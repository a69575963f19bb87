"""The page's sections on scaling and links: there with their numbers, or not there at all."""

from __future__ import annotations

import dataclasses
import random
import re
from pathlib import Path

import pytest
import reports

from gpubench.report.campaign_page import campaign_page
from gpubench.report.sections import Spec
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.stats.links import LinkRates
from gpubench.store.campaign import Campaign


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, JudgedCampaign, str]:
    campaign = reports.scaled(tmp_path_factory.mktemp("c") / "scaled")
    inputs = reports.collect(campaign)
    return campaign, inputs, reports.page_html(inputs).decode()


def section(page: str, name: str) -> str:
    found = re.search(rf'<section [^>]*id="{name}">.*?</section>', page, re.S)
    return found[0] if found else ""


def specs(inputs: JudgedCampaign) -> dict[str, Spec]:
    return {chart.anchor: chart.spec for chart in campaign_page(inputs).charts()}


def test_every_chart_has_its_place(made: tuple[Campaign, JudgedCampaign, str]) -> None:
    _, inputs, page = made
    assert [f"chart-{name}" for name in specs(inputs)] == re.findall(r'class="chart" id="([^"]+)"', page)


def test_efficiency_of_every_variant_at_every_size_with_its_interval(
    made: tuple[Campaign, JudgedCampaign, str],
) -> None:
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


def test_the_link_table_marks_the_slow_link_and_leads_to_the_raw_files(
    made: tuple[Campaign, JudgedCampaign, str],
) -> None:
    campaign, inputs, page = made
    cells, *crosses = specs(inputs)["links-0"]["layer"]
    assert [one["data"]["values"] for one in crosses] == [[{"from": "n1/0", "to": "n3/1"}]] * 2
    rates = {(row["from"], row["to"]): row["rate"] for row in cells["data"]["values"]}
    assert len(rates) == 8 * 7
    assert rates["n1/0", "n3/1"] == pytest.approx(5e8, rel=0.1)
    text = section(page, "links")
    assert text.count("✕") == 3
    assert "slow link: n1/0 to n3/1 at " in text
    files = re.findall(r'href="(runs/[^"]+links.jsonl)"', text)
    assert len(files) == 3 * 4
    assert all((campaign.directory / file).is_file() for file in files)


def test_a_campaign_without_the_data_has_none_of_the_sections(tmp_path: Path) -> None:
    for build in (reports.story, reports.empty):
        page = reports.page_html(reports.collect(build(tmp_path / build.__name__))).decode()
        for name in ("scaling", "links"):
            assert section(page, name) == ""
            assert f'href="#{name}"' not in page


def test_links_of_64_workers_in_many_tables_stay_below_five_megabytes(
    made: tuple[Campaign, JudgedCampaign, str],
) -> None:
    inputs = made[1]
    names = [f"node{number:03d}/0" for number in range(64)]
    random_ = random.Random(1)
    links = [
        LinkRates(sender, to, "two nodes", (1e9 * random_.lognormvariate(0, 0.05),))
        for sender in names
        for to in names
        if sender != to
    ]
    large = dataclasses.replace(
        inputs.links[0],
        links=links,
        nodes={name: name[:7] for name in names},
        bytes={(link.sender, link.receiver): 1e9 for link in links},
    )
    page = reports.page_html(dataclasses.replace(inputs, links=[large] * 10)).decode()
    assert len(page.encode()) < 5_000_000
    text = section(page, "links")
    assert text.count('class="chart"') == 4
    assert text.count("To keep this page small") == 6


def test_of_many_slow_links_the_slowest_are_named_and_the_others_counted(
    made: tuple[Campaign, JudgedCampaign, str],
) -> None:
    inputs = made[1]
    names = [f"n{number:02d}/0" for number in range(32)]
    random_ = random.Random(2)
    slow = set(zip(names[:15], names[15:], strict=False))
    links = [
        LinkRates(
            sender, to, "two nodes", (1e9 * random_.lognormvariate(0, 0.02) * (0.5 if (sender, to) in slow else 1),)
        )
        for sender in names
        for to in names
        if sender != to
    ]
    table = dataclasses.replace(
        inputs.links[0],
        links=links,
        nodes={name: name for name in names},
        bytes={(link.sender, link.receiver): 1e9 for link in links},
    )
    text = section(reports.page_html(dataclasses.replace(inputs, links=[table])).decode(), "links")
    assert text.count("slow link: ") == 12
    assert "and 3 more, less slow" in text
    assert text.count("✕") == 15


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
