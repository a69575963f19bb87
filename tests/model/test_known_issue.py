"""Which runs a rule concerns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench import resources
from gpubench.errors import UsageError
from gpubench.model.known_issue import Circumstances, Conditions, KnownIssue, UcxRange, load_known_issues

SHIPPED = {
    rule.name: rule
    for rule in load_known_issues((resources.root() / "issues" / "known.toml").read_text("utf-8"), "known.toml")
}
RULE = """
[[issue]]
name = "mine"
action = "skip"
reason = "it crashes"
url = "https://example.org/1"
[issue.when]
nodes_above = 2
"""
numbers = st.tuples(*[st.integers(0, 30)] * 3)


def run(ucx: str = "1.14.1", **changes: object) -> Circumstances:
    plain: dict[str, object] = {"nodes": 8, "gpus": 64, "protocol": "ucx", "runtime": "pyxis", "transports": ["rc"]}
    return Circumstances.model_validate({"ucx": ucx, "env": {}, **plain, **changes})


ARE_1_13 = ["1.13", "1.13.0", "1.13.1", "1.13.1.post1", "v1.13.x", "v1.13.x@0123456789", "git:v1.13.0", "ucx-1.13.1"]
ARE_NOT = ["1.12.1", "v1.12.x", "1.14.0", "1.130", "1.1", "11.3", "master", "none", "distribution", ""]


@pytest.mark.parametrize("versions", [ARE_1_13, ARE_NOT], ids=["1.13", "others"])
def test_all_of_1_13_is_1_13_and_nothing_else(versions: list[str]) -> None:
    found = [UcxRange(min="1.13", max="1.13").holds(version) for version in versions]
    assert found == [versions is ARE_1_13] * len(versions)


def test_a_branch_may_stand_on_either_side_of_an_exact_end_and_is_surely_inside_between_two() -> None:
    assert not any(UcxRange(min=low, max="1.20.1").holds("v1.20.x") for low in ("1.20.0", "1.18.1"))
    assert UcxRange(min="1.18.1", max="1.20.1").holds("v1.19.x")


@given(numbers, numbers, numbers)
def test_of_exact_versions_those_between_the_ends_are_inside(
    one: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]
) -> None:
    low, high = sorted((low, high))
    dotted = [".".join(map(str, version)) for version in (low, high, one)]
    assert UcxRange(min=dotted[0], max=dotted[1]).holds(dotted[2]) == (low <= one <= high)


@given(numbers, st.integers(1, 3), st.integers(1, 3))
def test_a_short_end_takes_in_everything_that_begins_so(version: tuple[int, ...], low: int, high: int) -> None:
    ends = [".".join(map(str, version[:length])) for length in (low, high)]
    assert UcxRange(min=ends[0], max=ends[1]).holds(".".join(map(str, version)))


@pytest.mark.parametrize(("nodes", "concerned"), [(1, False), (4, False), (5, True), (8, True), (16, True)])
def test_ucx_1_13_is_skipped_on_more_than_four_nodes(nodes: int, concerned: bool) -> None:
    rule = SHIPPED["ucx-8461"]
    assert (rule.action, rule.url) == ("skip", "https://github.com/openucx/ucx/issues/8461")
    assert rule.when.hold(run("v1.13.x", nodes=nodes)) == concerned
    assert not rule.when.hold(run("v1.13.x", nodes=nodes, protocol="tcp"))


@pytest.mark.parametrize(
    ("ucx", "device", "concerned"),
    [
        ("1.20.0", "lo", True),
        ("1.20.1", "lo", True),
        ("1.21.0", "lo", False),
        ("1.20.1", "eth0", False),
        ("1.20.1", "", False),
    ],
)
def test_ucx_1_20_is_skipped_on_the_loopback(ucx: str, device: str, concerned: bool) -> None:
    env = {"UCX_NET_DEVICES": device} if device else {}
    assert SHIPPED["ucx-11202"].when.hold(run(ucx, nodes=1, env=env)) == concerned


CONDITIONS: dict[str, tuple[object, dict[str, object], dict[str, object]]] = {
    "ucx": ({"min": "1.14", "max": "1.14"}, {}, {"ucx": "1.15.0"}),
    "nodes_above": (7, {}, {"nodes": 7}),
    "gpus_above": (63, {}, {"gpus": 63}),
    "protocols": (["ucx"], {}, {"protocol": "tcp"}),
    "runtimes": (["enroot", "pyxis"], {}, {"runtime": "venv"}),
    "transports": (["rc", "dc"], {}, {"transports": ["tcp"]}),
    "env": ({"UCX_TLS": "*rc*"}, {"env": {"UCX_TLS": "tcp,rc_x"}}, {"env": {"UCX_TLS": "tcp"}}),
}


@given(st.sets(st.sampled_from(sorted(CONDITIONS)), min_size=1), st.sets(st.sampled_from(sorted(CONDITIONS))))
def test_a_rule_concerns_a_run_when_every_condition_holds(asked: set[str], broken: set[str]) -> None:
    when = Conditions.model_validate({name: CONDITIONS[name][0] for name in asked})
    facts: dict[str, object] = {}
    for name, (_, kept, other) in CONDITIONS.items():
        facts.update(other if name in broken else kept)
    assert when.hold(run(**facts)) == (not asked & broken)  # type: ignore[arg-type]


def test_a_rule_reads_as_written() -> None:
    (rule,) = load_known_issues(RULE, "mine.toml")
    assert isinstance(rule, KnownIssue)
    assert rule.why == "known issue mine: it crashes (https://example.org/1)"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nodes_above = 2", "node_above = 2", "unknown key 'issue.0.when.node_above' (did you mean 'nodes_above'?)"),
        ("nodes_above = 2", "", "would concern every run"),
        ('action = "skip"', 'action = "env"', "action env and the table env go together"),
        ('action = "skip"', 'action = "drop"', "'issue.0.action' = 'drop'"),
        ('url = "https://example.org/1"', 'url = "there"', "'issue.0.url' = 'there'"),
        ('name = "mine"', 'name = "mine"\nexpires = "soon"', "'issue.0.expires' = 'soon'"),
        ("nodes_above = 2", 'ucx = { min = "1.14", max = "1.13" }', "min 1.14 lies above max 1.13"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(old: str, new: str, message: str) -> None:
    assert old in RULE
    with pytest.raises(UsageError, match=r"^mine\.toml: ") as caught:
        load_known_issues(RULE.replace(old, new, 1), "mine.toml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
