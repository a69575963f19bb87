"""A user's file is read, never run; what is wrong with it is one line with the line's number."""

import hashlib
import sys

import pytest

from gpubench.errors import UsageError
from gpubench.model.own_workload import OwnWorkload, packed_together, parse_own
from gpubench.model.suite import Suite
from gpubench.node.workloads.catalogue import Shape

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


def parse(attribute: str, text: str = TEXT, where: str = "mine.py", **others: str) -> OwnWorkload:
    """The workload of ``mine.py`` with that text, beside other files (``helper="..."``)."""
    files = {"mine.py": text, **{f"{name}.py": content for name, content in others.items()}}

    def read(name: str) -> bytes:
        if name not in files:
            raise FileNotFoundError(2, "No such file or directory")
        return files[name].encode()

    return parse_own("mine.py", attribute, read, where)


@pytest.mark.parametrize("name", ["join", "most", "more", "within", "Whole", "Derived", "made"])
def test_functions_and_classes_that_can_be_workloads_are_accepted_and_not_run(name: str) -> None:
    own = parse(name, where="x/mine.py")
    assert own.described.name == f"mine.py:{name}"
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    assert own.with_identity({"rows": 3}) == {"rows": 3, "sha256": digest}
    package = f"gpubench/node/workloads/own_{digest[:16]}"
    assert own.packed() == {f"{package}/__init__.py": b"", f"{package}/mine.py": TEXT.encode()}
    assert not [module for module in sys.modules if f"own_{digest[:16]}" in module]


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("x = 1\ndef join(client params):\n    pass\n", "join", "mine.py:2: not Python: "),
        ("\0", "join", "mine.py: not Python: "),
        ("def joint(client, params): ...\n", "join", "no function or class 'join' (did you mean 'joint'?)"),
        ("from a import b\ndef join(c, p): ...\n", "", "which function or class? (there is: join); write mine.py:NAME"),
        ("\n\ndef join(client): ...\n", "join", "mine.py:3: join is called with (client, params), and takes (client)"),
        ("def join(a, b, c): ...\n", "join", "and takes (a, b, c)"),
        ("def join(a, b, *, c): ...\n", "join", "and takes (a, b, *, c)"),
        ("async def join(client, params): ...\n", "join", "mine.py:1: join is async; write a plain function"),
        ("class Join:\n    def prepare(self): ...\n", "Join", "mine.py:1: Join has no method 'once'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(text: str, name: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(name, text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ('{ sha256 = "0" }', "mine.toml:4: 'sha256' tells one content of the file from another"),
        ("{ day = 2026-11-24 }", "mine.toml:4: day = datetime.date(2026, 11, 24): write a number"),
        ("{ share = [nan] }", "mine.toml:4: share = [nan]: write a number"),
    ],
)
def test_a_parameter_that_no_file_can_hold_is_refused_with_its_line(params: str, said: str) -> None:
    text = f'name = "mine"\n[[workload]]\nfile = "mine.py:join"\nparams = {params}\n'
    own = {"mine.py:join": parse("join")}
    with pytest.raises(UsageError) as caught:
        resolve(text, own)
    assert said in str(caught.value)


def test_two_contents_of_a_file_are_two_cells_and_its_folder_is_no_part_of_one() -> None:
    text = 'name = "mine"\n[[workload]]\nfile = "mine.py:join"\nparams = { rows = 3 }\n'
    ids = []
    for source, where in ((TEXT, "mine.py"), (TEXT, "elsewhere/mine.py"), (TEXT + "\n", "mine.py")):
        (spec,) = resolve(text, {"mine.py:join": parse("join", source, where)})
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


HELPED = "from .helper import join\nfrom . import more\n"


def test_files_that_the_file_imports_are_packed_beside_it_under_one_hash() -> None:
    helper = "def join(client, params):\n    from .deep import inner\n"
    own = parse("join", HELPED, helper=helper, more="", deep="from .mine import x\n", unused="")
    package = f"gpubench/node/workloads/own_{own.identity['sha256'][:16]}"
    names = ["__init__.py", "mine.py", "deep.py", "helper.py", "more.py"]
    assert list(own.packed()) == [f"{package}/{name}" for name in names]
    assert own.packed()[f"{package}/helper.py"] == helper.encode()
    others = [
        parse("join", HELPED, helper=helper, more="", deep="# changed\n"),
        parse("join", HELPED, helper=helper, more="# changed", deep="from .mine import x\n"),
    ]
    assert len({one.identity["sha256"] for one in (own, *others)}) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nfrom .helper import join\n", "x/mine.py:2: can't read x/helper.py: No such file or directory"),
        ("from ..helper import join\n", "x/mine.py:1: imports from another folder"),
        ("from .a.helper import join\n", "x/mine.py:1: imports from another folder"),
        ("from .broken import join\n", "x/broken.py:2: not Python: "),
    ],
)
def test_a_file_that_cannot_be_packed_is_refused_with_the_line_that_imports_it(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse("join", text, "x/mine.py", broken="\ndef join(:\n")
    assert said in str(caught.value)


def test_a_files_name_is_one_of_a_module() -> None:
    with pytest.raises(UsageError, match=r"my-work\.py: no name of a module"):
        parse_own("my-work.py", "join", lambda _name: TEXT.encode(), "my-work.py")


PLANNED = """
class Join:
    plan = {
        "params": {
            "rows": {"kind": "count", "default": 1e6, "text": "of each table"},
            "chunk": {"kind": "size", "default": "1MiB"},
            "how": {"kind": "choice", "default": "inner", "choices": ["inner", "left"]},
        },
        "backends": {"dask": [], "polars": ["polars", "pyarrow"]},
        "devices": ["cpu"],
        "least_workers": 2,
        "held": "max(3 * rows * 8 / workers, chunk) if how else 0",
        "grows": {"rows": 1.0},
        "timed": "the join",
    }

    def once(self): ...

def total(client, params): ...

total.plan = {"version": "2", "held": "10**9 * threads / nodes"}
"""


def test_what_a_plan_needs_to_know_is_read_from_the_file() -> None:
    known = parse("Join", PLANNED).described
    assert {name: param.default for name, param in known.params.items()} == {
        "rows": 1_000_000,
        "chunk": 2**20,
        "how": "inner",
    }
    assert (known.backends, known.devices, known.least_workers) == (("dask", "polars"), ("cpu",), 2)
    assert (known.needs["polars"], known.grows, known.timed) == (("polars", "pyarrow"), (("rows", 1.0),), "the join")
    params = {"rows": 10**6, "chunk": 2**20, "how": "inner"}
    assert known.held(params, Shape(2, 1, 1)) == 12_000_000
    assert known.held(params, Shape(10, 10, 1)) == 2**20
    assert parse("total", PLANNED).described.held({}, Shape(2, 1, 3)) == 1_500_000_000


def test_a_plan_may_be_annotated() -> None:
    text = "class Join:\n    plan: ClassVar = {'least_workers': 3}\n    def once(self): ...\n"
    assert parse("Join", text).described.least_workers == 3
    assert parse("Join", text.replace(" = {'least_workers': 3}", "")).described.least_workers == 1


def test_parameters_that_the_file_names_are_read_and_checked_as_those_of_the_catalogue() -> None:
    own = {"mine.py:Join": parse("Join", PLANNED)}
    begin = 'name = "mine"\n[[workload]]\nfile = "mine.py:Join"\n'
    (spec,) = resolve(f'{begin}backend = "polars"\nparams = {{ chunk = "2MiB" }}\n', own)
    assert (spec.backend, {**spec.params, "sha256": ""}) == (
        "polars",
        {"rows": 1_000_000, "chunk": 2 * 2**20, "how": "inner", "sha256": ""},
    )
    for entry, said in (
        ("params = { row = 3 }", "mine.toml:4: mine.py:Join has no parameter 'row' (did you mean 'rows'?)"),
        ("params = { chunk = 3 }", "mine.toml:4: mine.py:Join.chunk = 3: a quantity needs its unit"),
        ('params = { how = "outer" }', "mine.toml:4: mine.py:Join.how = 'outer': not one of inner, left"),
        ('backend = "polar"', "mine.toml:4: mine.py:Join has no backend 'polar' (did you mean 'polars'?)"),
    ):
        with pytest.raises(UsageError) as caught:
            resolve(f"{begin}{entry}\n", own)
        assert said in str(caught.value)


def test_a_version_stands_for_the_hash_and_two_contents_of_one_are_refused() -> None:
    own, changed = parse("total", PLANNED), parse("total", PLANNED + "# a comment\n", "elsewhere/mine.py")
    assert own.with_identity({"rows": 3}) == changed.with_identity({"rows": 3}) == {"rows": 3, "version": "2"}
    assert own.packed().keys() == changed.packed().keys()
    assert parse("total", PLANNED.replace('"2"', '"3"')).packed().keys() != own.packed().keys()
    with pytest.raises(ValueError, match="'version' tells one content of the file from another"):
        own.with_identity({"version": 3})
    assert parse("Join", PLANNED).with_identity({"version": 3})["version"] == 3
    assert packed_together([own, own]) == own.packed()
    with pytest.raises(UsageError, match=r"two files mine\.py differ, and both are version 2 of mine\.py"):
        packed_together([own, changed])


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("dict(a=1)", "plan is no literal"),
        ("{[]: 1}", "plan is no literal"),
        ("[]", "plan is no dict"),
        ("{1: 2}", "plan is no dict"),
        ('{"hold": "1"}', "plan: unknown key 'hold' (did you mean 'held'?)"),
        ('{"params": {"rows": {"kind": "count"}}}', "plan: key 'params.rows.default' is missing"),
        ('{"params": {"rows": {"kind": "rows", "default": 1}}}', "plan: params.rows: no kind 'rows'"),
        ('{"params": {"rows": {"kind": "size", "default": 1}}}', "params.rows: default = 1: a quantity needs its unit"),
        ('{"params": {}, "grows": {"rows": 1}}', "plan: grows: no parameter 'rows'"),
        ('{"held": "rows * 8"}', "plan: held: no 'rows' (there is: nodes, threads, workers)"),
        ('{"held": "().__class__"}', "plan: held: '().__class__' is more than arithmetic"),
        ('{"held": "open(3)"}', "plan: held: 'open(3)' is more than arithmetic"),
        ('{"held": "8 *"}', "plan: held: no arithmetic: invalid syntax"),
        ('{"held": "9**9**9**9"}', "plan: held = 9**9**9**9: "),
        ('{"held": "1 / (workers - 1)"}', "plan: held = 1 / (workers - 1): float division by zero"),
        ('{"least_workers": 0}', "plan: 'least_workers' = 0: "),
        ('{"backends": {}}', "plan: 'backends' = {}: "),
    ],
)
def test_what_is_wrong_with_a_plan_is_one_line_with_its_place(plan: str, said: str) -> None:
    text = f"class Join:\n    plan = {plan}\n    def once(self): ...\n"
    with pytest.raises(UsageError) as caught:
        parse("Join", text)
    assert f"mine.py:2: {said}" in str(caught.value) or (
        "mine.py:2: plan: " in str(caught.value) and said in str(caught.value)
    )
    assert "\n" not in str(caught.value)


def test_memory_that_a_value_makes_endless_is_refused_with_the_entrys_line() -> None:
    plan = '{"params": {"chunk": {"kind": "count", "default": 1}}, "held": "8 / chunk"}'
    own = {"mine.py:Join": parse("Join", f"class Join:\n    plan = {plan}\n    def once(self): ...\n")}
    with pytest.raises(UsageError, match=r"mine\.toml:2: mine\.py:Join: held = 8 / chunk: float division by zero"):
        resolve('name = "mine"\n[[workload]]\nfile = "mine.py:Join"\nparams = { chunk = 0 }\n', own)


def resolve(text: str, own: dict) -> list:
    from gpubench.model.base import TomlSource, key_lines

    return Suite.load(text, "mine.toml").resolve(
        TomlSource("mine.toml", key_lines(text)), reps=None, timeout_s=7.0, own=own
    )
