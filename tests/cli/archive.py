"""The Draco history; ``tests/data/README.md`` says where it is from."""

from pathlib import Path

from tests.conftest import ROOT


def draco_archive() -> Path:
    """The file."""
    return ROOT / "tests" / "data" / "draco-multi-node-merge.csv"
