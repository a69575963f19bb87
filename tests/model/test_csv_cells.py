"""Cells of a CSV start no formula, and come back as they were."""

import io
import re

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given

from gpubench.model.text import FORMULA, KEPT_TEXT, from_cell

CELLS = st.text(alphabet="=+-@\t\r'a1,\"\n ", max_size=6)


def as_text(text: str) -> str:
    return re.sub(FORMULA, r"'\1", text)


@given(CELLS)
def test_any_text_comes_back_and_begins_no_formula(text: str) -> None:
    assert from_cell(as_text(text)) == text
    assert not as_text(text).startswith(("=", "+", "-", "@", "\t", "\r"))


@given(st.lists(CELLS, min_size=1, max_size=4))
def test_a_table_is_written_and_read_with_the_same_patterns(texts: list[str]) -> None:
    column = pl.Series("a", texts)
    written = column.str.replace(FORMULA, "'${1}")
    assert written.to_list() == [as_text(text) for text in texts]
    assert written.str.replace(KEPT_TEXT, "${1}").to_list() == texts
    if all(texts):  # an empty cell is no text in a CSV
        file = io.BytesIO()
        written.to_frame().write_csv(file)
        back = pl.read_csv(file.getvalue(), schema_overrides={"a": pl.String()})["a"]
        assert back.str.replace(KEPT_TEXT, "${1}").to_list() == texts


@pytest.mark.parametrize("text", ["1.22.0", "a=b", "", "'quoted'", "node-1", "O'Brien"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert as_text(text) == from_cell(text) == text
