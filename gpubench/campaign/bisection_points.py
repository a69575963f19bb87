"""Lists of points that a search makes itself."""

from collections.abc import Sequence

from gpubench.errors import UsageError
from gpubench.images.wheels import releases, resolve, version_key
from gpubench.model.variant import ImageSpec, parse_variants


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
