"""The pages that ``docs/generate.py`` makes are up to date; each key has a description; the schemas fit real files."""

from __future__ import annotations

import json
import os
import runpy
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import ROOT

DOCS = ROOT / "docs"
PAGES: dict[str, str] = runpy.run_path(str(DOCS / "generate.py"))["pages"]()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    if os.environ.get("GPUBENCH_UPDATE_GOLDEN"):
        (DOCS / name).write_text(PAGES[name], encoding="utf-8")
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name], f"docs/{name} is out of date: make docs"


def schema(kind: str) -> dict[str, Any]:
    return json.loads(PAGES[f"schemas/{kind}.json"])


@pytest.mark.parametrize("kind", ["site", "suite"])
def test_every_key_has_a_description(kind: str) -> None:
    whole = schema(kind)
    tables = {"top level": whole, **whole["$defs"]}
    bare = [
        f"{name}.{key}"
        for name, table in tables.items()
        for key, one in table["properties"].items()
        if not one.get("description") and "$ref" not in one
    ]
    assert bare == []


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("sites/*.toml"), *ROOT.glob("suites/*.toml")]), ids=lambda p: p.stem
)
def test_a_shipped_file_fits_the_schema_and_one_with_a_wrong_key_does_not(path: Path) -> None:
    plain = tomllib.loads(path.read_text(encoding="utf-8"))
    judge = jsonschema.Draft202012Validator(schema(path.parent.name.removesuffix("s")))
    assert [error.message for error in judge.iter_errors(plain)] == []
    assert not judge.is_valid({**plain, "partition": "gpu"})
