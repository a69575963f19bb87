"""`gpubench suites list`: the catalogue in 80 columns, whole as JSON, and in its document."""

import json
import os

import pytest

from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.report import catalogue
from tests.conftest import ROOT, Run

DOCUMENT = ROOT / "docs" / "workloads.md"


def test_the_table_names_every_workload_at_a_lines_beginning_and_fits_80_columns(gpubench: Run) -> None:
    lines = list(catalogue.table_lines(CATALOGUE.values()))
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["workload", *CATALOGUE]
    assert max(map(len, lines)) <= 80
    named = [line.partition(":")[0] for line in gpubench("suites", "list").stdout.splitlines() if line[0] != " "]
    assert named == [*sorted(path.stem for path in (ROOT / "suites").glob("*.toml")), "all workloads"]
    both = gpubench("suites", "list", "tasks").stdout.splitlines()
    assert [line.partition(" ")[0] for line in both].count("tasks:") == 2, "a suite and a workload have this name"
    shown = gpubench("suites", "list", "quick").stdout.splitlines()
    assert shown[0].startswith("quick: ")
    heads = [line.split()[0] for line in shown[1:] if not line.startswith(" ")]
    assert heads == ["workload", "merge", "transpose-sum", "tasks", "message"]


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_sheet_of_a_workload_says_every_parameter_and_fits_80_columns(name: str) -> None:
    lines = list(catalogue.sheet_lines(CATALOGUE[name]))
    text = " ".join(" ".join(lines).split())
    for key, param in CATALOGUE[name].params.items():
        assert f" {key} = " in text
        for word in (param.text, param.original, *param.choices):
            assert " ".join(word.split()) in text
    assert CATALOGUE[name].held_text in text
    assert max(map(len, lines)) <= 80


def test_json_holds_everything_and_of_one_the_same_document(gpubench: Run) -> None:
    whole = json.loads(gpubench("suites", "list", "--json").stdout)
    assert whole["schema"] == "gpubench/workloads/1"
    assert [one["name"] for one in whole["workloads"]] == list(CATALOGUE)
    keys = {"name", "family", "source", "scaling", "backends", "devices", "timed", "graph", "counted", "oracle", "held"}
    assert set(whole["workloads"][0]) == keys | {"grows", "least_workers", "parameters"}
    one = json.loads(gpubench("suites", "list", "merge", "--json").stdout)
    assert one["workloads"] == [found for found in whole["workloads"] if found["name"] == "merge"]
    rows = one["workloads"][0]["parameters"][0]
    assert (rows["name"], rows["kind"], rows["default"]) == ("rows_per_worker", "count", 200_000)


def test_the_documents_table_is_that_of_the_catalogue() -> None:
    table = "".join(f"{line}\n" for line in catalogue.markdown_lines(CATALOGUE.values()))
    head, _, _ = DOCUMENT.read_text(encoding="utf-8").partition("| workload |")
    if os.environ.get("GPUBENCH_UPDATE_GOLDEN"):
        DOCUMENT.write_text(head + table, encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == head + table
