"""Lists of points: those that a user types, and those that a search makes itself."""

import dataclasses
from collections.abc import Sequence

from gpubench.errors import UsageError
from gpubench.images.wheels import releases, resolve, version_key
from gpubench.model.variant import ImageSpec, parse_variants
from gpubench.stats.bisection import Begin, Extend, SearchAnswer, SearchSettings, Step, next_move
from gpubench.store.campaign import Campaign


@dataclasses.dataclass(frozen=True)
class PointList:
    """The points of a search in their order: variants as typed, of which the first and the last are the ends.

    Args:
        subjects: what each commit says of itself; empty where points are no commits.
    """

    points: tuple[str, ...]
    subjects: tuple[str, ...] = ()

    @property
    def labels(self) -> list[str]:
        """What the points are called."""
        return [variant.label for variant in parse_variants(list(self.points))]

    def label(self, point: int) -> str:
        """Of a position."""
        return self.labels[point]

    def subject(self, point: int) -> str:
        """Of a position; empty where it has none."""
        return self.subjects[point] if self.subjects else ""

    def variant(self, point: int) -> str:
        """As typed."""
        return self.points[point]

    def next_move(self, steps: Sequence[Step], settings: SearchSettings) -> Begin | Extend | SearchAnswer:
        """What to do after these steps."""
        return next_move(len(self.points), steps, settings)

    def uncounted(self, _campaign: Campaign, _of_ends: Campaign) -> frozenset[str]:
        """Runs of a step without a meaning: none."""
        return frozenset()


def versions_between(ends: Sequence[str]) -> list[str]:
    """The points of a search over versions: both ends as typed, and every release between them that has a wheel.

    Stack, packages and settings of the points between are those of the ends.

    Raises:
        UsageError: not two ends, no releases of UCX, or ends that differ in more than the release.
    """
    variants = parse_variants(list(ends))
    if len(variants) != 2:
        raise UsageError(f"--over versions needs two ends, and --variants has {len(variants)}", then="name two")
    first, last = (ImageSpec.parse(variant.ucx) for variant in variants)
    if (first.stack, first.packages, variants[0].env) != (last.stack, last.packages, variants[1].env):
        raise UsageError(
            "--over versions searches versions alone, and the ends differ in stack, packages or settings too",
            then="give both the same, or list the points: --points",
        )
    old, new = (version_key(resolve(spec.ucx).release) for spec in (first, last))
    if old == new:
        raise UsageError(f"both ends are UCX {first.ucx}", then="name two releases")
    between = [release for release in releases() if min(old, new) < version_key(release) < max(old, new)]
    settings = "".join(f",{name}={value}" for name, value in variants[0].env.items())
    named = [f"{ImageSpec(release, first.stack, first.packages)}{settings}" for release in between]
    return [ends[0], *(named if old < new else reversed(named)), ends[1]]
