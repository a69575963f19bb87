"""What a workload moved between the workers."""

from collections.abc import Mapping
from typing import Any

from gpubench.node.workloads.catalogue import CATALOGUE


def moved_bytes(
    workload: str, backend: str, params: Mapping[str, Any], details: Mapping[str, Any], reps: int
) -> int | None:
    """Bytes between workers in a repetition, from the details of a workload's record.

    None where the workload says what it must move, or what it moves passes no log.
    """
    known = CATALOGUE.get(workload)
    unknown = not reps or "seen_bytes" not in details or details["least_moved_bytes"]
    is_unlogged = known is not None and known.unlogged(backend, params)
    return None if unknown or is_unlogged else details["seen_bytes"] // reps


def cannot_change(workload: str) -> str:
    """What it means that a workload of this name moves next to nothing by the logs."""
    unless = "" if workload in CATALOGUE else ", unless data moves peer to peer (p2p), which Dask doesn't log"
    return f"UCX cannot change this{unless}"
