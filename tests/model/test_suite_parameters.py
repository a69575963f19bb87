from typing import Any

import pytest

from gpubench.errors import UsageError
from gpubench.model.parameters import plain_value, sizes_spelled
from gpubench.model.suite import Suite
from gpubench.node.workloads.catalogue import CATALOGUE


def resolve(text: str, reps: int | None = None) -> list[Any]:
    return Suite.load('name = "mine"\n' + text, "mine.toml").resolve("mine.toml", reps=reps, timeout_s=7.0)


def entry(name: str, params: str = "", more: str = "") -> str:
    return f'[[workload]]\nname = "{name}"\n{more}\n[workload.params]\n{params}\n'


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        resolve(text)
    return str(caught.value)


def test_what_the_suite_leaves_out_comes_from_the_catalogue() -> None:
    (workload,) = resolve('[[workload]]\nname = "transpose-sum"\n')
    assert dict(workload.params) == {"size": 3000, "chunk": 1000}
    assert (workload.backend, workload.reps, workload.warmup, workload.timeout_s) == ("dask", 6, 1, 7.0)


def test_repetitions_of_the_user_beat_the_entry_and_the_entry_beats_the_suite() -> None:
    text = "reps = 3\nwarmup = 2\n" + entry("tasks", more="reps = 4\nwarmup = 0") + entry("merge")
    assert [(item.reps, item.warmup) for item in resolve(text)] == [(4, 0), (3, 2)]
    assert [item.reps for item in resolve(text, reps=9)] == [9, 9]


def test_quantities_become_plain_numbers() -> None:
    message, merge = resolve(entry("message", 'size = "1KiB"\nround_trips = 2') + entry("merge", 'frac_match = "25%"'))
    assert message.params == {"size": 1024, "round_trips": 2, "pairs": "all"}
    assert merge.params["frac_match"] == 0.25


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (entry("mrege"), "mine.toml: no workload 'mrege' (did you mean 'merge'?)"),
        (entry("merge", more='backend = "dusk"'), "mine.toml: merge has no backend 'dusk' (did you mean 'dask'?)"),
        (
            entry("merge", "row_per_worker = 5"),
            "mine.toml: merge has no parameter 'row_per_worker' (did you mean 'rows_per_worker'?)",
        ),
        (entry("merge", 'rows_per_worker = "5"'), "mine.toml: merge.rows_per_worker = '5': not a whole number ≥ 0"),
        (entry("merge", "rows_per_worker = 2.5"), "mine.toml: merge.rows_per_worker = 2.5: not a whole number ≥ 0"),
        (entry("merge", "rows_per_worker = -1"), "mine.toml: merge.rows_per_worker = -1: not a whole number ≥ 0"),
        (entry("merge", "rows_per_worker = inf"), "mine.toml: merge.rows_per_worker = inf: not a whole number ≥ 0"),
        (entry("merge", "rows_per_worker = true"), "mine.toml: merge.rows_per_worker = True: not a whole number ≥ 0"),
        (entry("merge", 'join = "left"'), "mine.toml: merge.join = 'left': not one of default, shuffle, broadcast"),
        (entry("merge", "frac_match = 0.3"), "mine.toml: merge.frac_match = 0.3: a quantity needs its unit"),
        (entry("message", "size = 1024"), "mine.toml: message.size = 1024: a quantity needs its unit"),
        (
            entry("message", 'size = "1 KiB of it"'),
            "mine.toml: message.size = '1 KiB of it': '1 KiB of it' is not a size",
        ),
        (entry("strided-sum", "generate = 1"), "mine.toml: strided-sum.generate = 1: write true or false"),
        (entry("tasks") * 2, "mine.toml: workload 'tasks' is listed twice with the same parameters"),
    ],
)
def test_what_does_not_fit_names_file_workload_and_parameter(text: str, message: str) -> None:
    assert refusal(text).startswith(message)


def test_the_same_parameters_written_differently_are_the_same_workload() -> None:
    text = entry("message", 'size = "1KiB"') + entry("message", 'size = "1024B"\nround_trips = 5')
    assert "is listed twice" in refusal(text)


def test_repetitions_do_not_make_two_workloads_different() -> None:
    first, second = resolve(entry("tasks", "count = 7") + entry("tasks", "count = 8", "reps = 2"))
    assert first.params_id != second.params_id
    assert first.params_id == resolve(entry("tasks", "count = 7", "reps = 99"))[0].params_id


def test_parameters_are_spelled_as_a_person_writes_them_and_plainly_where_nobody_knows_their_kind() -> None:
    params = {"size": 10_000_000, "round_trips": 5}
    assert sizes_spelled(CATALOGUE["message"], params) == "size = 10MB, round_trips = 5"
    assert sizes_spelled(None, {"depth": 3}) == "depth = 3"


def test_a_count_is_refused_above_what_json_and_floats_hold_exactly() -> None:
    assert plain_value(CATALOGUE["tasks"], "count", 2**53) == 2**53
    with pytest.raises(ValueError, match=r"^tasks\.count = 9007199254740993: "):
        plain_value(CATALOGUE["tasks"], "count", 2**53 + 1)


@pytest.mark.parametrize(
    ("keys", "workload", "begins"),
    [
        ("", 'file = "mine.py:join"', True),
        ("first_pass = false", 'file = "mine.py:join"', False),
        ("", 'name = "tasks"', False),
        ("first_pass = true", 'name = "tasks"', True),
    ],
)
def test_a_suite_with_a_file_of_the_users_own_begins_with_a_first_pass(keys, workload, begins):
    suite = Suite.load(f'name = "s"\n{keys}\n[[workload]]\n{workload}\n', "s.toml")
    assert suite.begins_with_first_pass is begins
