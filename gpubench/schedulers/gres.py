"""Generic resources of a Slurm node, as ``sinfo --format=%G`` and ``scontrol show node`` write them.

From slurm.conf(5), ``Gres``: ``NAME[:TYPE][:no_consume]:COUNT[K|M|G|T|P]``, parted by commas. Behind an entry may stand
sockets or indexes of the devices (``(S:0-3)``, ``(IDX:0,2)``), which may hold commas. An entry without a count is one.
"""

import re
from typing import NamedTuple

_ENTRY = re.compile(r"(?:[^,(]|\([^)]*\))+")
_COUNT = re.compile(r"(\d+)([KMGTP]?)", re.IGNORECASE)
_SLICE = re.compile(r"\d+g\.\d+gb", re.IGNORECASE)
"""In the type of a MIG slice (NVIDIA's profiles: ``1g.10gb``)."""
_NONE = ("", "(null)", "n/a")


class Gres(NamedTuple):
    """One entry; ``type`` is empty where it names none."""

    name: str
    type: str
    number: int


def parse_gres(text: str) -> list[Gres]:
    """Every entry, in its order; none for ``(null)``."""
    if text.strip().lower() in _NONE:
        return []
    return [_entry(entry) for entry in _ENTRY.findall(text)]


def _entry(text: str) -> Gres:
    name, *others = text.partition("(")[0].strip().split(":")
    count = _COUNT.fullmatch(others[-1]) if others else None
    number = int(count[1]) * 1024 ** " KMGTP".index(count[2].upper() or " ") if count else 1
    types = [part for part in (others[:-1] if count else others) if part != "no_consume"]
    return Gres(name, ":".join(types), number)


def whole_gpus(text: str) -> int | None:
    """How many whole GPUs a node has; None where entries are slices of GPUs, so that nothing tells it."""
    gpus = [entry for entry in parse_gres(text) if entry.name == "gpu"]
    return None if any(_SLICE.search(entry.type) for entry in gpus) else sum(entry.number for entry in gpus)
