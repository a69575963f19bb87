"""A user's file is read, never run; what is wrong with it is one line with the line's number."""

from __future__ import annotations

import hashlib
import sys

import pytest

from gpubench.errors import UsageError
from gpubench.model.own_workload import parse_own
from gpubench.model.suite import Suite, sizes_spelled
from gpubench.workloads.catalogue import described

TEXT = """
import sys
raise SystemExit("a workload's file was run")
def join(client, params): ...
def most(*words): ...
def more(client, params, times=3): ...
if sys:
    def within(client, params): ...
class Whole:
    def once(self): ...
class Derived(Whole): ...
made = join
pattern = "\\d"
"""


@pytest.mark.parametrize("name", ["join", "most", "more", "within", "Whole", "Derived", "made"])
def test_functions_and_classes_that_can_be_workloads_are_accepted_and_not_run(name: str) -> None:
    own = parse_own("mine.py", name, TEXT.encode(), "x/mine.py")
    assert own.name == f"mine.py:{name}"
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    assert own.complete({"rows": 3}) == {"rows": 3, "sha256": digest}
    assert own.packed() == (f"gpubench/workloads/own_{digest[:16]}.py", TEXT.encode())
    assert f"gpubench.workloads.own_{digest[:16]}" not in sys.modules


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("x = 1\ndef join(client params):\n    pass\n", "join", "mine.py:2: not Python: "),
        ("\0", "join", "mine.py: not Python: "),
        ("def joint(client, params): ...\n", "join", "no function or class 'join' (did you mean 'joint'?)"),
        ("def join(client, params): ...\n", "", "which function or class? (there is: join); write mine.py:NAME"),
        ("\n\ndef join(client): ...\n", "join", "mine.py:3: join is called with (client, params), and takes (client)"),
        ("def join(a, b, c): ...\n", "join", "and takes (a, b, c)"),
        ("def join(a, b, *, c): ...\n", "join", "and takes (a, b, *, c)"),
        ("async def join(client, params): ...\n", "join", "mine.py:1: join is async; write a plain function"),
        ("class Join:\n    def prepare(self): ...\n", "Join", "mine.py:1: Join has no method 'once'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(text: str, name: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_own("mine.py", name, text.encode(), "mine.py")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ('{ sha256 = "0" }', "mine.toml:4: 'sha256' is the hash of the file"),
        ("{ day = 2026-11-24 }", "mine.toml:4: day = datetime.date(2026, 11, 24): write a number"),
        ("{ share = [nan] }", "mine.toml:4: share = [nan]: write a number"),
    ],
)
def test_a_parameter_that_no_file_can_hold_is_refused_with_its_line(params: str, said: str) -> None:
    text = f'name = "mine"\n[[workload]]\nfile = "mine.py:join"\nparams = {params}\n'
    own = {"mine.py:join": parse_own("mine.py", "join", TEXT.encode(), "mine.py")}
    with pytest.raises(UsageError) as caught:
        resolve(text, own)
    assert said in str(caught.value)


def test_two_contents_of_a_file_are_two_cells_and_its_folder_is_no_part_of_one() -> None:
    text = 'name = "mine"\n[[workload]]\nfile = "mine.py:join"\nparams = { rows = 3 }\n'
    ids = []
    for source, where in ((TEXT, "mine.py"), (TEXT, "elsewhere/mine.py"), (TEXT + "\n", "mine.py")):
        (spec,) = resolve(text, {"mine.py:join": parse_own("mine.py", "join", source.encode(), where)})
        ids.append(spec.params_id)
    assert ids[0] == ids[1] != ids[2]


def test_an_entry_has_either_a_name_or_a_file_and_the_file_is_one_of_python() -> None:
    for entry, said in (
        ('name = "merge"\nfile = "mine.py:join"', "a workload has either 'name' or 'file'"),
        ("reps = 3", "a workload has either 'name' or 'file'"),
        ('file = "join"', "'join' names no Python file; write FILE.py:NAME"),
    ):
        with pytest.raises(UsageError, match=r"mine\.toml:") as caught:
            resolve(f'name = "mine"\n[[workload]]\n{entry}\n', {})
        assert said in str(caught.value)


def test_people_see_the_beginning_of_the_hash() -> None:
    own = parse_own("mine.py", "join", TEXT.encode(), "mine.py")
    params = own.complete({"rows": 3})
    assert sizes_spelled(described(own.name), params) == f"rows = 3, sha256 = {params['sha256'][:12]}"


def resolve(text: str, own: dict) -> list:
    from gpubench.model.base import TomlSource, key_lines

    return Suite.load(text, "mine.toml").resolve(
        TomlSource("mine.toml", key_lines(text)), reps=None, timeout_s=7.0, own=own
    )
