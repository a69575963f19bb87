"""What a job gets of the shell that hands it over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

OURS = "GPUBENCH_"
"""Begins every name by which a script, or what it starts, can be told something else than the plan says."""
BLOCKS = "GPUBENCH_BLOCKS"


def inherited(environ: Mapping[str, str], blocks: Iterable[int] | None = None) -> dict[str, str]:
    """All of it but the names that are ours: those are for who starts a script by hand.

    Args:
        environ: of this process.
        blocks: numbers of those that the script shall run; None: all.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(OURS)}
    return kept if blocks is None else {**kept, BLOCKS: " ".join(map(str, blocks))}
