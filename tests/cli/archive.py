"""The Draco history: branch gh-pages of rapidsai/dask-cuda-benchmarks holds it, this project has no copy."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import ROOT, need

NAME = "draco-multi-node-merge.csv"


def draco_archive() -> Path:
    """Where it stands beside the checkout (a worktree stands deeper); skips loudly where it doesn't."""
    places = [up / "shared" / "data" / NAME for up in ROOT.parents]
    found = next((one for one in places if one.is_file()), None)
    need(found is not None, f"the Draco history, {places[0]}")
    assert found is not None
    return found
