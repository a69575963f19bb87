"""One registry for all tests, and a login node for each."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import need
from tests.importing.nodes import Importer
from tests.importing.registry import Registry


@pytest.fixture(scope="session")
def registry() -> Iterator[Registry]:
    need(shutil.which("mksquashfs") is not None, "squashfs-tools")
    with Registry() as registry:
        yield registry


@pytest.fixture
def importer(tmp_path: Path) -> Importer:
    return Importer(tmp_path / "a node", tmp_path / "squash files")
