import dataclasses
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.node.spec import WorkloadRecord
from gpubench.node.spec.plain import SpecError, canonical, content_id, parse_json, parse_lines, to_plain

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=50)
@given(st.dictionaries(st.text(), json_values, max_size=5), st.randoms(use_true_random=False))
def test_the_same_value_has_one_canonical_form_whatever_the_order_of_its_keys(value: dict[str, Any], rng: Any) -> None:
    keys = list(value)
    rng.shuffle(keys)
    shuffled = {key: value[key] for key in keys}
    assert canonical(shuffled) == canonical(value)
    assert content_id(shuffled) == content_id(value)
    assert json.loads(canonical(value)) == value


def test_an_id_changes_with_the_value_and_has_the_asked_length() -> None:
    assert content_id({"a": 1}) != content_id({"a": 2})
    assert content_id({"a": 1}) != content_id({"a": "1"})
    assert [len(content_id({}, length)) for length in (12, 64)] == [12, 64]


def test_ids_never_move_because_stored_campaigns_hold_them() -> None:
    written = '{"a":["ü",2.5,null],"b":1}'.encode()
    assert content_id({"b": 1, "a": ["ü", 2.5, None]}) == hashlib.sha256(written).hexdigest()[:12]


@settings(max_examples=50)
@given(st.lists(st.dictionaries(st.text(), json_values, max_size=3), max_size=5))
def test_json_lines_read_back(rows: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    assert parse_lines(text) == rows


@pytest.mark.parametrize(
    "text", ["{", "[" * 100_000, r'["\ud800"]', r'{"\uDFFF": 1}', '"\ud800"', b'"\xed\xa0\x80"', b'"\xff"', b""]
)
def test_what_no_file_could_hold_is_no_document(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "value"), [(r'"\ud83d\ude00"', "\U0001f600"), (r'"\\ud800"', r"\ud800"), (b'"\xc3\xbc"', "ü")]
)
def test_what_only_looks_like_half_of_a_pair_is_read(text: str | bytes, value: str) -> None:
    assert parse_json(text) == value


def test_a_last_line_that_a_crash_cut_off_is_left_out() -> None:
    whole = '{"a": 1}\n{"b": 2}\n'
    for cut in range(1, len('{"b": 2}')):
        assert parse_lines(whole[: len('{"a": 1}\n') + cut]) in ([{"a": 1}], [{"a": 1}, {"b": 2}])
    assert parse_lines('{"a": 1}\n{"b":') == [{"a": 1}]


def test_a_broken_line_in_the_middle_is_named() -> None:
    with pytest.raises(SpecError, match=r"^line 2 is not JSON$"):
        parse_lines('{"a": 1}\n{"b":\n{"c": 3}\n')
    with pytest.raises(SpecError, match=r"^line 1 is not JSON$"):
        parse_lines("nonsense\n")


def test_the_plain_form_is_that_of_the_standard_library_and_shares_nothing() -> None:
    params = {"size": 1, "nested": [{"a": (1, 2.5, None)}], "flag": True}
    made = WorkloadRecord("merge", "dask", params, "0" * 12, 3, 1, "ok", details={"sums": [1, 2]})
    plain = to_plain([made, {"in": made}])
    assert plain == [dataclasses.asdict(made), {"in": dataclasses.asdict(made)}]
    plain[0]["params"]["nested"][0]["a"] = "changed"
    assert made.params["nested"] == [{"a": (1, 2.5, None)}]
