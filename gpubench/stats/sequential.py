"""Looking at a campaign while it runs, without raising more false alarms: alpha spending and its boundaries.

Sources: Armitage, McPherson & Rowe (1969), JRSS A 132:235 (the recursion); Lan & DeMets (1983), Biometrika 70:659 and
Kim & DeMets (1987), Biometrika 74:149 (spending functions, α·t^ρ with ρ = 2); Liu & Anderson (2008), JASA 103:1625 and
Maurer & Bretz (2013), Stat. Biopharm. Res. 5:311 (sequential p-values, and Holm on those); Jennison & Turnbull (1989),
JRSS B 51:305 (repeated confidence intervals).
"""

import dataclasses
import functools
import math

import numpy as np

from gpubench.stats import special
from gpubench.stats.runs import Floats

T_SHARE = 0.85
"""Share of alpha that the normal-scale boundaries may spend; the rest pays for using them on t (5 % → 4.25 %)."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_FAR = 12.0
_SMALLEST = 1e-10


def schedule(maximum: int) -> tuple[int, ...]:
    """Counts of blocks at which a campaign is looked at: 5, 6, then every second one, and ``maximum``."""
    looks = {5, 6, *range(8, maximum, 2), maximum}
    return tuple(sorted(look for look in looks if look <= maximum))


def looks_so_far(blocks: int, maximum: int) -> tuple[int, ...]:
    """Looks that a cell with this many pairs has had, the present count last even where none was scheduled for it."""
    past = tuple(look for look in schedule(maximum) if look < blocks)
    return (*past, blocks)


def alpha_spent(alpha: float, fraction: float) -> float:
    """Error spent once this fraction of the blocks is there: α·t² (Kim & DeMets, ρ = 2)."""
    return alpha * min(fraction, 1.0) ** 2


@functools.lru_cache(maxsize=4096)
def nominal_levels(
    looks: tuple[int, ...], maximum: int, alpha: float, sides: int, spend_all: bool
) -> tuple[float, ...]:
    """P-value below which each look stops, so that all looks together spend α·t².

    Args:
        looks: ascending counts of blocks.
        maximum: declared maximum of blocks, where t = 1.
        alpha: error to spend over all looks, on the normal scale.
        sides: 2 for a two-sided p-value; 1 for a one-sided one (each half of an equivalence test).
        spend_all: the last look spends all that is left, whatever its count of blocks.

    Returns:
        One level per look, of ``sides``-sided p-values.
    """
    levels: list[float] = []
    density: _Density | None = None
    used = 0.0
    for position, count in enumerate(looks):
        last = spend_all and position == len(looks) - 1
        target = alpha if last else alpha_spent(alpha, count / maximum)
        bound = _bound(density, count, target - used, sides)
        density = _continue(density, count, bound, sides)
        used = target
        levels.append(sides * float(special.ndtr(-bound)))
    return tuple(levels)


@dataclasses.dataclass(frozen=True)
class _Density:
    """Weights of the score (a sum with variance ``count``) on quadrature nodes, among campaigns that go on."""

    count: int
    score: Floats
    weight: Floats


def _bound(before: _Density | None, count: int, error: float, sides: int) -> float:
    if before is None:
        return float(-special.ndtri(error / sides))
    step = math.sqrt(count - before.count)

    def excess(bound: float) -> float:
        edge = bound * math.sqrt(count)
        crossing = special.ndtr((before.score - edge) / step)
        if sides == 2:
            crossing = crossing + special.ndtr((-edge - before.score) / step)
        return float(before.weight @ crossing) - error

    lowest = 0.0 if sides == 2 else -_FAR
    if excess(lowest) <= 0:
        return lowest
    from scipy import optimize  # noqa: PLC0415 - a quarter of a second of start, which only adaptive campaigns need

    return float(optimize.brentq(excess, lowest, 40.0))


def _continue(before: _Density | None, count: int, bound: float, sides: int) -> _Density:
    root = math.sqrt(count)
    low, high = (-bound * root if sides == 2 else -_FAR * root), bound * root
    score = (high - low) / 2 * _NODES + (high + low) / 2
    if before is None:
        density = np.exp(-(score**2) / (2 * count)) / math.sqrt(2 * math.pi * count)
    else:
        step = count - before.count
        kernel = np.exp(-((score[:, None] - before.score[None, :]) ** 2) / (2 * step)) / math.sqrt(2 * math.pi * step)
        density = kernel @ before.weight
    return _Density(count, score, density * _WEIGHTS * (high - low) / 2)


def sequential_p(p_values: Floats, looks: tuple[int, ...], maximum: int, alpha: float, spend_all: bool) -> Floats:
    """Smallest error rate at which a cell would have stopped at some look so far.

    Divided by ``T_SHARE``, so that it is compared with the whole alpha like the p-value of a fixed plan.

    Args:
        p_values: two-sided p-values at each look, shape (cells, looks).
        looks: counts of blocks, ascending.
        maximum: declared maximum of blocks.
        alpha: error rate at which decisions are made; the table is exact there.
        spend_all: as in ``nominal_levels``.

    Returns:
        Shape (cells,), between 1e-10 and 1.
    """
    rates, levels = _table(looks, maximum, alpha * T_SHARE, spend_all)
    smallest = np.ones(p_values.shape[0])
    for position in range(len(looks)):
        level = levels[:, position]
        logs = np.interp(np.log(np.maximum(p_values[:, position], 1e-300)), np.log(level), np.log(rates))
        rate = np.where(p_values[:, position] > level[-1], 1.0, np.exp(logs))
        smallest = np.minimum(smallest, rate)
    return np.minimum(smallest / T_SHARE, 1.0)


@functools.lru_cache(maxsize=256)
def _table(looks: tuple[int, ...], maximum: int, alpha: float, spend_all: bool) -> tuple[Floats, Floats]:
    # The levels of a look rise with alpha, so a table of (alpha, levels) turns a p-value into the alpha it would cross
    # at.
    grid = np.geomspace(_SMALLEST, 0.999, 150)
    rates = np.unique(np.concatenate([grid, [alpha]]))
    levels = np.array([nominal_levels(looks, maximum, float(rate), 2, spend_all) for rate in rates])
    return rates, np.maximum.accumulate(np.maximum(levels, 1e-300), axis=0)
