"""Verdicts as OpenMetrics text, read back by the format's own parser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from campaign_builder import begin, finish, make_plan, variant
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gpubench.cli.results.judge import judge_campaign
from gpubench.exporters import openmetrics
from gpubench.store.campaign import Campaign
from tests.conftest import ROOT, Run
from tests.exporters.test_export import SUITE


@pytest.fixture
def read(tmp_path: Path) -> tuple[Any, dict[str, Any]]:
    """The judged campaign, and every family that its text holds, by name."""
    directory = tmp_path / "campaign"
    variants = (variant("1.17.0"), variant('odd "one"\\n', env={"UCX_TLS": "tcp"}))
    finish(begin(directory, make_plan(variants, blocks=5, suite=SUITE)))
    judged = judge_campaign(Campaign.open(directory))
    text = openmetrics.text(judged.campaign.plan, judged.verdicts).decode()
    return judged, {family.name: family for family in text_string_to_metric_families(text)}


def test_every_comparison_has_its_numbers_and_exactly_one_verdict(read: tuple[Any, dict[str, Any]]) -> None:
    judged, families = read
    assert len(judged.verdicts) == 3
    for verdict in judged.verdicts:
        of_cell = {"workload": verdict.key["workload"], "candidate": verdict.candidate}

        def series(name: str, of_cell: dict[str, Any] = of_cell) -> list[Any]:
            return [each for each in families[name].samples if of_cell.items() <= each.labels.items()]

        (effect,) = series("gpubench_effect_ratio")
        assert effect.value == pytest.approx(verdict.effect)
        (low,), (high,) = series("gpubench_low_adjusted_ratio"), series("gpubench_high_adjusted_ratio")
        assert (low.value, high.value) == pytest.approx((verdict.low_adjusted, verdict.high_adjusted))
        assert [each.value for each in series("gpubench_blocks")] == [5]
        assert {each.labels["verdict"]: each.value for each in series("gpubench_verdict")} == {
            name: float(name == verdict.verdict) for name in openmetrics.VERDICTS
        }
    assert {family.type for family in families.values()} == {"gauge"}


def test_labels_do_not_name_the_campaign_so_that_the_next_one_continues_the_series(
    read: tuple[Any, dict[str, Any]],
) -> None:
    judged, families = read
    plan = judged.campaign.plan
    (planned,) = families["gpubench_planned_timestamp_seconds"].samples
    assert planned.labels == {"site": plan.site.name, "suite": plan.suite, "campaign": plan.campaign}
    others = [each for name, family in families.items() if "planned" not in name for each in family.samples]
    assert all("campaign" not in each.labels for each in others)


def test_an_undefined_number_has_no_series(tmp_path: Path) -> None:
    directory = tmp_path / "campaign"
    begin(directory, make_plan((variant("1.17.0"), variant("1.19.0")), blocks=3, suite=SUITE))
    judged = judge_campaign(Campaign.open(directory))
    text = openmetrics.text(judged.campaign.plan, judged.verdicts).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["gpubench_effect_ratio"].samples == []
    assert {each.value for each in families["gpubench_blocks"].samples} == {0}


def test_the_command_writes_the_file_that_the_collector_takes(gpubench: Run, tmp_path: Path) -> None:
    finish(begin(tmp_path / "campaign", make_plan((variant("1.17.0"), variant("1.19.0")), blocks=3, suite=SUITE)))
    done = gpubench("results", "export", "openmetrics", "campaign", "out/gpubench.prom")
    assert done.returncode == 0, done.stderr
    assert "3 verdicts in out/gpubench.prom" in done.stdout
    families = {
        each.name: {label for sample in each.samples for label in sample.labels}
        for each in text_string_to_metric_families((tmp_path / "out" / "gpubench.prom").read_text())
    }
    dashboard = json.loads((ROOT / "docs" / "grafana.json").read_text())
    targets = [(one["expr"], one["legendFormat"]) for panel in dashboard["panels"] for one in panel["targets"]]
    assert len(targets) == 5
    for query, legend in targets:
        (name,) = re.findall(r"gpubench_\w+", query)
        left = re.findall(r"by \(([\w, ]+)\)", query)
        selected = set(re.findall(r'(\w+)=~?"', query)) | {label for one in left for label in one.split(", ")}
        assert selected <= families[name], query
        shown = set(re.findall(r"{{(\w+)}}", legend))
        assert shown
        assert shown <= (set(left[0].split(", ")) if left else families[name]), (query, legend)
    variables = [one["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    assert len(variables) == 2
    for query in variables:
        name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", query).groups()  # type: ignore[union-attr]
        assert label in families[name], query
