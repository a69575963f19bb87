"""Copies of the golden campaign and import, to be damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1"


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "campaign", tmp_path / "campaign"))


@pytest.fixture
def import_copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "import", tmp_path / "import"))
