"""The options of a campaign from Python: what the command line refuses, they refuse too."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gpubench.campaign.interrupts import interrupts
from gpubench.campaign.options import CampaignOptions
from gpubench.errors import UsageError


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
