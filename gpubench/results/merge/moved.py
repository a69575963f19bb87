"""What a workload moved between the workers."""

from collections.abc import Mapping
from typing import Any

from gpubench.node.workloads.catalogue import CATALOGUE


def moved_bytes(workload: str, details: Mapping[str, Any], reps: int) -> int | None:
    """Bytes between workers in a repetition, from the details of a workload's record.

    None where the workload says what it must move, or what it measures is the scheduler, whose messages aren't counted.
    """
    known = CATALOGUE.get(workload)
    unknown = not reps or "seen_bytes" not in details or details["least_moved_bytes"]
    return None if unknown or (known and known.family == "scheduler") else details["seen_bytes"] // reps
