"""What every rendering of a job says in the same words."""

from __future__ import annotations

from gpubench.model.image import Image
from gpubench.model.plan import PlannedBlock, PlannedRun

NODE_HALF = "node.pyz"
UNRESOLVED = Image(
    kind="unresolved",
    id="unresolved",
    ucx_spec="",
    ucx_version="",
    binding="",
    python="python3",
    env={},
    manifest="",
    reference="unresolved",
)
"""Stands where a variant's image isn't built yet."""


def spec_path(block: PlannedBlock, run: PlannedRun) -> str:
    """Where a run's spec stands, below its job."""
    return f"specs/{block.block:03d}-{run.order}-{run.run}.json"


def turns_path(block: PlannedBlock) -> str:
    """Where the turns of an interleaved block stand, below its job."""
    return f"specs/{block.block:03d}-turns.json"
