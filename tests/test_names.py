"""A variable is called by the noun of what it holds (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import gpubench

NO_NOUNS = {"one", "found", "said", "words", "asked"}


def test_no_variable_of_the_product_has_a_name_that_fits_everything() -> None:
    folder = Path(gpubench.__file__).parent
    names = [
        f"{path.relative_to(folder)}:{node.lineno}: {name}"
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (name := _stored(node)) in NO_NOUNS
    ]
    assert names == []


def _stored(node: ast.AST) -> str:
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""
