"""Nodes that this shell holds already."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Allocation:
    """An allocation that this process runs in.

    Args:
        job_id: the scheduler's.
        nodes: how many it holds.
        count_variables: in which the scheduler tells a job script how many nodes it has.
        log: name of the file for what the script prints, as if the scheduler had started it.
        last_word: name of the file into which the script writes its exit code.
    """

    job_id: str
    nodes: int
    count_variables: tuple[str, ...]
    log: str
    last_word: str
