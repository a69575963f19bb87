"""What tests of single commands share."""

from __future__ import annotations

from typing import Any

import pytest

from gpubench.campaign import lifecycle
from tests.cli.searches import Runs


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(*arguments: Any, **options: Any) -> Runs:
        made = Runs(*arguments, **options)
        monkeypatch.setattr(lifecycle, "run_blocks", made)
        return made

    return use
