"""What a job gets of the shell that hands it over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

OURS = "GPUBENCH_"
"""Begins every name by which a script, or what it starts, can be told something else than the plan says."""
BLOCKS = "GPUBENCH_BLOCKS"
BUDGET = "GPUBENCH_BUDGET"
OVER_BUDGET = "no time left in the budget"
"""How the reason of a run begins whose block the script didn't begin for that."""


def inherited(
    environ: Mapping[str, str], blocks: Iterable[int] | None = None, budget_s: float | None = None
) -> dict[str, str]:
    """All of it but the names that are ours: those are for who starts a script by hand.

    Args:
        environ: of this process.
        blocks: numbers of those that the script shall run; None: all.
        budget_s: seconds in which they have to end, None: no bound; only scripts that this machine runs know of it.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(OURS)}
    if blocks is not None:
        kept[BLOCKS] = " ".join(map(str, blocks))
    if budget_s is not None:
        kept[BUDGET] = str(max(0, int(budget_s)))
    return kept
