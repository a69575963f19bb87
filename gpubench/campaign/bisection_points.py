"""Lists of points: those that a user types, and those that a search makes itself."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

from gpubench.errors import UsageError
from gpubench.images.ucx_specs import wheel_of
from gpubench.images.wheels import releases
from gpubench.model.text import version_key
from gpubench.model.variant import ImageSpec, parse_variant, parse_variants
from gpubench.stats.bisection import Begin, Extend, SearchAnswer, SearchSettings, Step, answer_so_far, next_move
from gpubench.store.campaign import Campaign


@dataclasses.dataclass(frozen=True)
class PointList:
    """The points of a search in their order: variants as typed, of which the first and the last are the ends.

    Args:
        subjects: what each commit says of itself; empty where points are no commits.
    """

    points: tuple[str, ...]
    subjects: tuple[str, ...] = ()

    @functools.cached_property
    def labels(self) -> list[str]:
        """What the points are called; there may be thousands."""
        return [parse_variant(point).label for point in self.points]

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

    def answer_so_far(self, steps: Sequence[Step], settings: SearchSettings) -> SearchAnswer | None:
        """The answer of a search that stops after these steps, where a change is named already."""
        return answer_so_far(len(self.points), steps, settings)

    def uncounted(self, _campaign: Campaign, _of_ends: Campaign) -> frozenset[str]:
        """Runs of a step without a meaning: none."""
        return frozenset()


def as_typed(label: str, spec: ImageSpec, env: Mapping[str, str]) -> str:
    """A point as a user types it."""
    return ",".join([f"{label}={spec}", *(f"{name}={value}" for name, value in env.items())])


def two_ends(
    over: str, ends: Sequence[str], *, otherwise: str
) -> tuple[tuple[str, str], tuple[ImageSpec, ImageSpec], Mapping[str, str]]:
    """Labels and images of two ends that differ in nothing but their UCX, and the settings of both.

    Args:
        over: what is searched between them.
        otherwise: what to do with ends that differ in more.

    Raises:
        UsageError: they do, or there aren't two.
    """
    variants = parse_variants(list(ends))
    if len(variants) != 2:
        raise UsageError(f"--over {over} needs two ends, and --variants has {len(variants)}", then="name two")
    first, last = variants
    specs = ImageSpec.parse(first.ucx), ImageSpec.parse(last.ucx)
    if (specs[0].stack, specs[0].packages, first.env) != (specs[1].stack, specs[1].packages, last.env):
        raise UsageError(
            f"--over {over} searches {over} alone, and the ends differ in stack, packages or settings too",
            then=otherwise,
        )
    return (first.label, last.label), specs, first.env


def versions_between(ends: Sequence[str]) -> list[str]:
    """The points of a search over versions: both ends as typed, and every release between them that has a wheel.

    Stack, packages and settings of the points between are those of the ends.

    Raises:
        UsageError: not two ends, no releases of UCX, or ends that differ in more than the release.
    """
    _, specs, env = two_ends("versions", ends, otherwise="give both the same, or list the points: --points")
    old, new = (version_key(wheel_of(spec.ucx).release) for spec in specs)
    if old == new:
        raise UsageError(f"both ends are UCX {specs[0].ucx}", then="name two releases")
    between = [release for release in releases() if min(old, new) < version_key(release) < max(old, new)]
    settings = "".join(f",{name}={value}" for name, value in env.items())
    named = [f"{dataclasses.replace(specs[0], ucx=release)}{settings}" for release in between]
    return [ends[0], *(named if old < new else reversed(named)), ends[1]]
