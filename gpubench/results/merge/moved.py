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
    unknown = not reps or "seen_bytes" not in details or details["least_moved_bytes"]
    return None if unknown or is_unlogged(workload, backend, params) else details["seen_bytes"] // reps


def is_unlogged(workload: str, backend: str, params: Mapping[str, Any]) -> bool:
    """Whether what the workload moves passes none of Dask's logs: nothing seen isn't nothing moved."""
    known = CATALOGUE.get(workload)
    return known is not None and known.unlogged(backend, params)


def cannot_change(workload: str) -> str:
    """What it means that a workload of this name moves next to nothing by the logs."""
    unless = "" if workload in CATALOGUE else ", unless data moves peer to peer (p2p), which Dask doesn't log"
    return f"UCX cannot change this{unless}"
