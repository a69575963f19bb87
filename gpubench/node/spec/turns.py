"""Turns of an interleaved block: the clusters of all variants live at the same time, and one works at a time."""

import dataclasses
import json
from typing import Dict, List

from gpubench.node.spec.plain import Document, to_plain

TURNS_SPEC = "gpubench/turns/1"

SEQUENTIAL = "sequential"
INTERLEAVED = "interleaved"

START = -1
"""Stands for a workload in the turn in which a cluster starts."""
END = -2
"""Stands for a workload in the turn in which a cluster is checked once more and ends."""


@dataclasses.dataclass(frozen=True)
class Turn:
    """``reps`` timed repetitions of one workload of one run, without a switch between them.

    ``order`` is the run's place in its block; ``workload`` its place among the run's workloads, ``START`` or ``END``.
    """

    order: int
    workload: int
    reps: int = 0


@dataclasses.dataclass(frozen=True)
class TurnsSpec(Document):
    """What the conductor of one block needs to know.

    ``runs`` are the block's runs that aren't planned to be skipped, by their place in the block (as text: JSON has no
    other keys). ``turns`` are taken in this order. ``turn_s`` bounds each turn: who doesn't give it back by then loses
    all others. ``start_s`` bounds the wait for the supervisors of all runs.
    """

    SCHEMA = TURNS_SPEC
    PARTS = {"turns": Turn}  # noqa: RUF012

    schema: str
    campaign: str
    block: int
    runs: Dict[str, str]
    interface: str
    turns: List[Turn]
    start_s: float
    turn_s: float
    silence_s: float

    def dump(self) -> str:
        """JSON text, for a file that a person can read: one line for each turn."""
        plain = to_plain(self)
        turns = ",\n  ".join(json.dumps(turn) for turn in plain.pop("turns"))
        head = json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False).rstrip("\n}")
        return f'{head},\n "turns": [\n  {turns}\n ]\n}}\n'


def rendezvous_name(block: int) -> str:
    """Under which the runs of a block find their conductor."""
    return f"block-{block}"
