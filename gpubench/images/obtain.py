"""Images for campaigns: find or build the image of each UCX spec on a site, and check that it is intact."""

import logging
from collections.abc import Iterable, Sequence

from gpubench.errors import UsageError
from gpubench.images.kinds import KINDS
from gpubench.images.kinds.base import Found, ImageRequest
from gpubench.images.lock import read_lock
from gpubench.images.recipes import stacks_for
from gpubench.images.ucx_specs import named
from gpubench.model.base import nearest
from gpubench.model.image import Image
from gpubench.model.site import Site
from gpubench.model.variant import ImageSpec
from gpubench.plan.image_checks import BUILT
from gpubench.runtimes import RUNTIMES
from gpubench.schedulers import LOCAL

_log = logging.getLogger(__name__)


def kind_of(site: Site) -> str:
    """The kind of images that the site's runtime starts. Raises UsageError: no such runtime."""
    if site.runtime not in RUNTIMES:
        raise UsageError(f"site {site.name}: no runtime '{site.runtime}'{nearest(site.runtime, RUNTIMES)}")
    return RUNTIMES[site.runtime].KIND


def obtain_images(
    site: Site,
    specs: Sequence[str],
    *,
    date: str | None = None,
    base: str | None = None,
    look_only: bool = False,
) -> dict[str, Found | None]:
    """One image per spec: locked ones and, if this machine is the site, ones that can be built.

    None stands for an image that must be built first. ``date`` (``YYYYMMDD``) and ``base`` are as for an
    ``ImageRequest``. ``look_only``: nothing is built, whatever its kind, and nothing said.

    Raises:
        UsageError: a spec with packages or a stack of its own, where images are built by name; and as the kind says.
        PlanRefusedError: no stack can run a spec that has no image yet.
    """
    kind, names = kind_of(site), {spec: named(spec) for spec in specs}
    for spec in [] if KINDS[kind].ON_DEMAND else specs:
        if (own := ImageSpec.parse(spec)).packages or own.stack:
            raise UsageError(
                f"'{spec}': on site {site.name}, images of kind {kind} have one stack for all variants",
                then="write the UCX version only, and choose the stack with gpubench images build --stack NAME",
            )
    request = ImageRequest(
        specs=list(dict.fromkeys(names.values())),
        site=site,
        lock=read_lock(),
        date=date or "",
        base=base or "",
        build=not look_only and site.scheduler in LOCAL,
        look_only=look_only,
        progress=(lambda _line: None) if look_only else _log.info,
    )
    images = KINDS[kind].obtain(request)
    if kind in BUILT:  # what no stack can run is known before anybody builds it
        missing = {spec for spec, image in images.items() if image is None}
        stacks_for(sorted(missing - not_imported(site, missing)), site)
    return {spec: images[name] for spec, name in names.items()}


def not_imported(site: Site, specs: Iterable[str]) -> set[str]:
    """Images whose containers are built and locked, if the site's runtime needs them as squashfs files."""
    if kind_of(site) != "squashfs":
        return set()
    lock = read_lock()
    return {spec for spec in specs if lock.find(kind="docker", spec=named(spec), site=site.name) is not None}


def make_ready(image: Image) -> None:
    """Make sure that the image is on this machine and intact; raises DataError or MissingToolError."""
    KINDS[image.kind].ready(image)
