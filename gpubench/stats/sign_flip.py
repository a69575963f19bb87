"""Sign flips: a second opinion that assumes nothing about the shape of the noise. It never decides.

Under no difference the sign of a block's difference is a coin toss, because the order within the block was drawn.
Sources: Fisher (1935), *The Design of Experiments*, §21 (one cell); Westfall & Young (1993), *Resampling-Based Multiple
    Testing*,
algorithm 2.8 (step-down max-|t|); Winkler et al. (2014), NeuroImage 92:381 (the same flips for all cells of a run).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpubench.stats.paired_blocks import count
from gpubench.stats.runs import Bools, Floats, Ints

MOST_FLIPS = 10_000
FEWEST_BLOCKS = 6
_CHUNK = 1_000
_TIE = 1e-9


def flip_signs(coins: int, seed: int) -> Iterator[Floats]:
    """Sign patterns of ±1, shape (at most 1,000, coins) at a time: all that there are up to 10,000, else 10,000 drawn.

    The first pattern flips nothing: the observed data are one of their own rearrangements, so no p-value is 0.
    """
    if _all_fit(coins):
        codes = np.arange(2**coins)[:, None]
        every = _signs((codes >> np.arange(coins)[None, :]) & 1)
        yield from (every[start : start + _CHUNK] for start in range(0, len(every), _CHUNK))
        return
    # A bit per coin: whole patterns of thousands of blocks as numbers of eight bytes are half a gigabyte.
    toss = np.random.default_rng(abs(seed))  # of a plan, any whole number
    for start in range(0, MOST_FLIPS, _CHUNK):
        drawn = toss.integers(0, 256, (_CHUNK, -(-coins // 8)), dtype=np.uint8)
        signs = _signs(np.unpackbits(drawn, axis=1, count=coins))
        if start == 0:
            signs[0] = 1.0
        yield signs


def _all_fit(coins: int) -> bool:
    return coins < MOST_FLIPS.bit_length() and 2**coins <= MOST_FLIPS


def _signs(bits: Any) -> Floats:
    signs: Floats = np.asarray(bits, dtype=np.float64)
    signs *= -2.0  # in place: ten thousand blocks are tossed thousands of times
    signs += 1.0
    return signs


def _patterns(coins: int) -> int:
    return 2**coins if _all_fit(coins) else MOST_FLIPS


def flip_p(differences: Floats, blocks: Ints, seed: int) -> Floats:
    """Two-sided sign-flip p-value of each cell by itself.

    Args:
        differences: log differences, 0 behind each cell's pairs, shape (cells, width).
        blocks: pairs of each cell, shape (cells,).
        seed: of the flips where they are drawn.

    Returns:
        Shape (cells,), NaN below six pairs (the smallest value there would be above 5 %).
    """
    p = np.full(len(blocks), np.nan)
    for size in np.unique(blocks[blocks >= FEWEST_BLOCKS]).tolist():
        cells = np.equal(blocks, size)
        rows = differences[cells, :size]
        observed = np.abs(rows.sum(axis=1)) * (1 - _TIE)
        reached = sum((np.abs(signs @ rows.T) >= observed).sum(axis=0) for signs in flip_signs(size, seed))
        p[cells] = reached / _patterns(size)
    return p


def family_flip_p(differences: Floats, mask: Bools, group: Ints, counted: Bools, seed: int) -> Floats:
    """Family-wise p-values: step-down max-|t| with one coin for all cells of a (nodes, block).

    Cells of one run share its luck, and flipping them together keeps that; the smallest p-value depends on the count of
    blocks, not on the count of cells, so that a large family can be confirmed.

    Args:
        differences: log differences, shape (cells, width).
        mask: which of them count, same shape.
        group: number of the (nodes, block) of each, same shape.
        counted: cells that can be tested; the others count as t = 0, shape (cells,).
        seed: of the flips where they are drawn.

    Returns:
        Shape (cells,), NaN for a cell that isn't counted.
    """
    p = np.full(len(counted), np.nan)
    cells = np.flatnonzero(counted)
    if not len(cells):
        return p
    coins, spread = _by_coin(differences[cells], mask[cells], group[cells])
    blocks = count(mask[cells])
    squares = (spread**2).sum(axis=0)
    observed = _abs_t(spread.sum(axis=0), squares, blocks)
    descending = np.argsort(-observed, kind="stable")
    reached = np.zeros(len(cells))
    for signs in flip_signs(coins, seed):
        t = _abs_t(signs @ spread, squares, blocks)[:, descending]
        # The largest statistic among this cell and all less extreme ones.
        largest = np.maximum.accumulate(t[:, ::-1], axis=1)[:, ::-1]
        reached += (largest >= observed[descending] * (1 - _TIE)).sum(axis=0)
    p[cells[descending]] = np.maximum.accumulate(reached / _patterns(coins))
    return p


def _by_coin(differences: Floats, mask: Bools, group: Ints) -> tuple[int, Floats]:
    used, coin = np.unique(group[mask], return_inverse=True)
    spread = np.zeros((len(used), len(differences)))
    spread[coin, np.nonzero(mask)[0]] = differences[mask]
    return len(used), spread


def _abs_t(sums: Floats, squares: Floats, blocks: Ints) -> Floats:
    # Flips leave the sum of squares as it is, so t follows from the sum alone.
    rest = np.maximum(squares - sums**2 / blocks, squares * 1e-12)
    return np.asarray(np.abs(sums) / np.sqrt(np.where(rest > 0, rest, 1.0) * blocks / (blocks - 1)))
