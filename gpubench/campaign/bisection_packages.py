"""The packages in which the images of two ends differ, and which of them can only change together.

They are taken from the manifests of both images. The binding and UCX belong to the stack and to the version: they are
no packages of a search.
"""

from collections.abc import Mapping, Sequence

from gpubench.campaign.bisection_differences import Difference, Differences
from gpubench.images.kinds.venvs import belongs_to_binding, is_locked, pinned_exactly
from gpubench.model.variant import ImageSpec
from gpubench.store.campaign import Campaign

Versions = tuple[Mapping[str, str], Mapping[str, str]]


def package_differences(campaign: Campaign) -> Differences:
    """By the campaign that measured both ends: typed ones first, then by name."""
    variants = campaign.plan.variants
    images = [variant.image for variant in variants]
    manifests = [campaign.manifests()[image.manifest] if image else {} for image in images]
    first, last = (manifest.get("stack", {}).get("packages", {}) for manifest in manifests)
    stack_names = [str(manifest["stack"]["name"]) for manifest in manifests if manifest]
    has_gpus = campaign.plan.site.has_gpus
    different = sorted(name for name in {*first, *last} if first.get(name) != last.get(name))
    left_out: dict[str, str] = {}
    for name in different:
        if belongs_to_binding(name):
            left_out[name] = "it comes with the stack's binding"
        elif name not in first or name not in last:
            left_out[name] = f"only {variants[0 if name in first else 1].label} has it"
        elif unlocked := [stack for stack in stack_names if not is_locked(name, stack, has_gpus=has_gpus)]:
            left_out[name] = f"no variant can choose it: stack {unlocked[0]} has it only with other packages"
    names = [name for name in different if name not in left_out]
    pins = [edge for image in images if image for edge in pinned_exactly(image)]
    typed = {name for variant in variants for name in ImageSpec.parse(variant.ucx).packages}
    groups = sorted(_together(names, pins), key=lambda group: not typed & {*group})
    searched = tuple(_difference(sorted(group, key=lambda name: name not in typed), (first, last)) for group in groups)
    return Differences(searched, tuple(left_out.items()))


def _difference(names: Sequence[str], versions: Versions) -> Difference:
    first, last = versions
    (name, value), *others = ((name, (first[name], last[name])) for name in names)
    return Difference(name, value, "package", with_it=tuple(others))


def _together(names: Sequence[str], pins: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The names, those in one list that pin each other's exact version, directly or through others."""
    groups: dict[str, list[str]] = {name: [name] for name in names}
    for pair in pins:
        first, second = (groups.get(name) for name in pair)
        if first is not None and second is not None and first is not second:
            first += second
            groups |= dict.fromkeys(second, first)
    return list({id(group): sorted(group) for group in groups.values()}.values())
