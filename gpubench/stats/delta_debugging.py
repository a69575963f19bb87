"""A smallest part of a set that still has an effect: the algorithm *ddmin*, as a function of the tests so far.

Source: A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software
Engineering 28(2), 2002, section 3: ``ddmin``. What *fails* there *has the effect* here. The result is 1-minimal:
without any one of its elements the effect isn't seen. A test that is unresolved counts, as there, as one without it.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

Subset = frozenset[int]
Outcomes = Mapping[Subset, bool | None]
"""Whether each tested subset has the effect; None: unresolved."""


@dataclasses.dataclass(frozen=True)
class Untested:
    """Subsets to test next: the first is needed, those after it are needed if those before it lack the effect."""

    subsets: tuple[Subset, ...]


def ddmin(items: Sequence[int], outcomes: Outcomes) -> Subset | Untested:
    """The minimal subset of ``items``, of which all together have the effect; or what has to be tested for it.

    Args:
        items: each once; what stands side by side is tested together.
        outcomes: of the tests so far; the empty set has no effect, and is never asked for.
    """
    rest, parts = list(items), 2
    while len(rest) > 1:
        tests = _tests(rest, parts)
        effective = next((at for at, subset in enumerate(tests) if outcomes.get(subset)), None)
        if effective is not None:
            rest = [item for item in rest if item in tests[effective]]
            parts = 2 if effective < parts else max(parts - 1, 2)
        elif untested := [subset for subset in tests if subset not in outcomes]:
            return Untested(tuple(untested))
        elif parts < len(rest):
            parts = min(2 * parts, len(rest))
        else:
            break
    return frozenset(rest)


def _tests(rest: Sequence[int], parts: int) -> list[Subset]:
    """The parts, then their complements, which are the parts again where there are two."""
    bounds = [len(rest) * part // parts for part in range(parts + 1)]
    subsets = [frozenset(rest[low:high]) for low, high in itertools.pairwise(bounds)]
    return subsets + ([frozenset(rest) - subset for subset in subsets] if parts > 2 else [])
