"""Balanced orders: who goes first must not decide who is faster."""

from __future__ import annotations

import random

from gpubench.model.plan import Place


def campaign_orders(seed: int, place: Place, variants: int, blocks: int) -> list[list[int]]:
    """The balanced orders of a campaign at one place; more blocks only make the list longer."""
    rng = random.Random(f"{seed}:{place[0]}:{place[1]}")  # noqa: S311 - a shuffle that anybody can repeat
    return balanced_orders(variants, blocks, rng)


def balanced_orders(variants: int, blocks: int, rng: random.Random) -> list[list[int]]:
    """The order of the variants in every block.

    Blocks are made in sets of ``variants``; a set is a Latin square (cyclic shifts of a random permutation, rows
    shuffled), so that within a set every variant stands once in every place, and over any number of blocks every
    variant stands first equally often ±1. For two variants: AB and BA, shuffled, pair by pair.

    Args:
        variants: how many variants, at least 1.
        blocks: how many blocks.
        rng: the plan's own generator, seeded.

    Source: Latin squares as row-column designs, Cochran & Cox, Experimental Designs, ch. 4.
    """
    orders: list[list[int]] = []
    while len(orders) < blocks:
        base = rng.sample(range(variants), variants)
        square = [base[shift:] + base[:shift] for shift in range(variants)]
        orders.extend(rng.sample(square, variants))
    return orders[:blocks]
