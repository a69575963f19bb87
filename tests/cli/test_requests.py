"""What options make of a request: one that has the name of a field decides it; and what Python may not give."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gpubench.campaign.interrupts import interrupts
from gpubench.campaign.options import CampaignOptions
from gpubench.campaign.requests import DECIDED, parse_request
from gpubench.errors import UsageError

GIVEN: dict[str, tuple[Any, Any]] = {
    "blocks": ("7", 7),
    "margin": ("4%", 0.04),
    "nodes": ("2, 1", [1, 2]),
    "protocol": ("tcp", "tcp"),
    "seed": (5, 5),
    "workers": ("1 3", [1, 3]),
}
"""What is typed, and what the request has."""
PROFILE = {"blocks": 5, "margin": 0.1, "nodes": [1, 2, 4], "protocol": "ucx"}
"""Of site local-slurm; the margin is that of its suite."""


def test_all_options_that_decide_a_field_are_listed_here() -> None:
    assert sorted(GIVEN) == sorted(DECIDED)


@pytest.mark.parametrize("name", GIVEN)
def test_an_option_decides_the_field_of_its_name_and_no_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    typed, value = GIVEN[name]
    request = parse_request(CampaignOptions(site="local-slurm", **{name: typed}))
    assert getattr(request, name) == value
    others = PROFILE.keys() - {name}
    assert {other: getattr(request, other) for other in others} == {other: PROFILE[other] for other in others}


def test_a_campaign_can_have_a_part_of_a_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = parse_request(CampaignOptions(suite="quick", workloads="message, merge"))
    assert [item.name for item in request.workloads] == ["merge", "message"]  # in the order of the suite
    with pytest.raises(UsageError, match=r"suite quick has no workload 'massage'.*message.*; it has merge, "):
        parse_request(CampaignOptions(suite="quick", workloads="massage"))
    with pytest.raises(UsageError, match="--workloads"):
        parse_request(CampaignOptions(suite="quick", workloads=" "))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reps": 0}, "option reps = 0 is not within 1 to"),
        ({"reps": -3}, "option reps = -3 is not within 1 to"),
        ({"reps": 1.5}, "option reps = 1.5: it takes int"),
        ({"reps": True}, "option reps = True: it takes int"),
        ({"blocks": 2}, "option blocks = 2: it takes str"),
        ({"budget": 300}, "option budget = 300: it takes str"),
        ({"margin": 0.03}, "option margin = 0.03: it takes str"),
        ({"outputs": "here"}, "option outputs = 'here': it takes Path"),
        ({"suite": Path("x.toml")}, "option suite = PosixPath('x.toml'): it takes str"),
        ({"settings": "launcher=ssh"}, "option settings = 'launcher=ssh': it takes a list of str"),
        ({"site": None}, "option site = None: it takes str"),
    ],
)
def test_a_value_that_its_option_does_not_take_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        CampaignOptions(**options)
    assert message in str(caught.value)


def test_a_thread_of_another_program_sees_no_signals_and_changes_no_handler() -> None:
    def seen() -> list[str]:
        with interrupts() as names:
            return names

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(seen).result() == []
