"""What tests of single commands share."""

import functools
from typing import Any

import pytest

import tests.drawn_once  # noqa: F401
from tests.cli.searches import write_runs


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Any:
    return functools.partial(write_runs, monkeypatch)
