"""What tests of single commands share."""

from collections.abc import Mapping
from typing import Any

import pytest

from gpubench.campaign import lifecycle
from gpubench.images import variables
from gpubench.model.image import Image
from tests.cli.searches import Runs

ANSWERS: dict[object, str] = {}
ask_configuration = variables.ask_configuration


def ask_once(image: Image, *options: str, env: Mapping[str, str] | None = None) -> str:
    """What the image's real ``ucx_info`` says; each question is put once in a test process, since it takes 0.4 s."""
    key = (image.id, options, frozenset((env or {}).items()))
    if key not in ANSWERS:
        ANSWERS[key] = ask_configuration(image, *options, env=env)
    return ANSWERS[key]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(*arguments: Any, **options: Any) -> Runs:
        made = Runs(*arguments, **options)
        monkeypatch.setattr(lifecycle, "run_blocks", made)
        monkeypatch.setattr(variables, "ask_configuration", ask_once)
        return made

    return use
