"""How many blocks fit, and the arithmetic for those who are refused."""

from __future__ import annotations

from gpubench.errors import PlanRefusedError
from gpubench.model.quantities import format_seconds

LEAST_BLOCKS = 5


def least_whole_sets(variants: int) -> int:
    """The fewest blocks that are whole balanced sets and at least five."""
    return -(-LEAST_BLOCKS // variants) * variants


def blocks_that_fit(
    *, asked: int, variants: int, all_places_block_s: float, budget_s: float, firm: bool, spent_s: float = 0.0
) -> int:
    """The most blocks ≤ ``asked`` that fit, in whole balanced sets, at least five.

    Args:
        asked: blocks per place.
        variants: size of a balanced set.
        all_places_block_s: seconds of one block at every place (nodes x workers per node) together.
        budget_s: seconds that are left of the budget.
        spent_s: seconds of it that are gone.
        firm: the user gave the budget; else it is the site's habit, and the fewest useful blocks are taken over it.

    Raises:
        PlanRefusedError: a firm budget holds fewer than the least.
    """
    least = least_whole_sets(variants)
    most = max(least, asked // variants * variants)
    holds = _whole(budget_s, all_places_block_s)
    fitting = holds // variants * variants
    if fitting >= least:
        return min(fitting, most)
    if firm:
        needed = least * all_places_block_s
        of = f"a budget of {format_seconds(budget_s)}"
        if spent_s:
            of = f"what the first pass left of the budget, {format_seconds(budget_s)},"
        raise PlanRefusedError(
            f"{of} holds {holds} blocks of about "
            f"{format_seconds(all_places_block_s)}; {variants} variants need {least} "
            f"({least} x {format_seconds(all_places_block_s)} = {format_seconds(needed)})",
            then=f"give BUDGET={int((needed + spent_s) // 60) + 1}m, "
            "fewer variants, NODES, WORKERS or REPS, or a smaller SUITE",
        )
    return least


def _whole(budget_s: float, block_s: float) -> int:
    # 1.0 // 0.2 is 4: one more block than the division says may fit exactly.
    blocks = int(budget_s // block_s)
    return blocks + 1 if (blocks + 1) * block_s <= budget_s else blocks
