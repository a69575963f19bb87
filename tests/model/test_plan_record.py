"""plan.json is written once and read back for years."""

import json

import pytest

from gpubench.errors import DataError
from gpubench.model.plan import Plan, PlanAddition
from gpubench.plan.additions import plan_repair
from tests.plan.requests_by_hand import plan, site

SITE = site('[limits]\nworkload = "90s"\n')


def refusal(text: str) -> str:
    with pytest.raises(DataError) as caught:
        Plan.parse(text, "outputs/c/plan.json")
    message = str(caught.value)
    assert message.startswith("outputs/c/plan.json")
    assert "\n" not in message
    return message


def changed(**changes: object) -> str:
    return json.dumps({**json.loads(plan().dump()), **changes})


def test_a_plan_reads_back_as_it_was_written() -> None:
    made = plan(site=SITE, images={}, budget_s=600.0, budget_firm=True)
    assert Plan.parse(made.dump(), "plan.json") == made
    assert Plan.parse(made.dump(), "plan.json").dump() == made.dump()


def test_an_addition_reads_back_as_it_was_written() -> None:
    made = plan()
    one = {run.run: "ok" for _, _, run in list(made.runs())[:1]}
    addition = plan_repair(made, one, "2026-11-20T13:00:00+00:00").addition
    assert addition is not None
    assert PlanAddition.parse(addition.dump(), "001.json") == addition


@pytest.mark.parametrize("cut", [0, 1, 100, -10])
def test_a_plan_that_is_cut_off_is_one_line_about_the_file(cut: int) -> None:
    assert "is cut off or not JSON" in refusal(plan().dump()[:cut])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(schema="gpubench/plan/2"), "is gpubench/plan/2, not gpubench/plan/1; use the gpubench that wrote it"),
        ("[]", "is no record of gpubench, not gpubench/plan/1"),
        ("{}", "is no record of gpubench, not gpubench/plan/1"),
        ("null", "is no record of gpubench, not gpubench/plan/1"),
        (changed(seed="seven"), "'seed': "),
        (changed(jobs=[{"job": "j001-n1"}]), "'jobs.0.nodes': Field required"),
        (changed(novelty=1), "'novelty': Extra inputs are not permitted"),
    ],
)
def test_a_plan_of_another_schema_or_with_wrong_fields_is_one_line_about_the_file(text: str, message: str) -> None:
    assert message in refusal(text)
