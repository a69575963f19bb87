"""Images for campaigns: find or build the image of each UCX spec on a site, and check that it is intact.

And ``gpubench images import``: the script that imports, and where it runs.
"""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpubench import __version__, resources
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.images.lock import add_rows, read_lock
from gpubench.cli.say import say
from gpubench.cli.sites.profiles import to_type
from gpubench.errors import (
    DataError,
    GpubenchError,
    InterruptedByUserError,
    MissingToolError,
    SchedulerError,
    UsageError,
)
from gpubench.files import write_atomically
from gpubench.images.kinds import KINDS
from gpubench.images.kinds.base import Found, ImagePaths, ImageRequest, images_root
from gpubench.images.recipes import stacks_for
from gpubench.model.base import nearest
from gpubench.model.image import Image, ImageSpec
from gpubench.model.images_lock import LockRow
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.plan.image_checks import BUILT
from gpubench.render.environment import words
from gpubench.render.importing import PROGRAMS, ImportItem, render_import
from gpubench.runtimes import RUNTIMES
from gpubench.schedulers import LOCAL


def kind_of(site: Site) -> str:
    """The kind of images that the site's runtime starts. Raises UsageError: no such runtime."""
    if site.runtime not in RUNTIMES:
        raise UsageError(f"site {site.name}: no runtime '{site.runtime}'{nearest(site.runtime, RUNTIMES)}")
    return RUNTIMES[site.runtime].KIND


def obtain_images(
    site: Site,
    specs: Sequence[str],
    asked: CampaignOptions,
    *,
    build: bool = True,
    look_only: bool = False,
    quiet: bool = False,
) -> dict[str, Found | None]:
    """One image per spec: locked ones and, if this machine is the site and ``build`` is set, ones that can be built.

    None stands for an image that must be built first. ``look_only``: nothing is built, whatever its kind.

    Raises:
        UsageError: a spec with packages or a stack of its own, where images are built by name; and as the kind says.
        PlanRefusedError: no stack can run a spec that has no image yet.
    """
    kind = kind_of(site)
    for spec in [] if KINDS[kind].ON_DEMAND else specs:
        if (own := ImageSpec.parse(spec)).packages or own.stack:
            raise UsageError(
                f"'{spec}': on site {site.name}, images of kind {kind} have one stack for all variants",
                then="write the UCX version only, and choose the stack with gpubench images build --stack NAME",
            )
    request = ImageRequest(
        specs=specs,
        site=site,
        root=images_root(site.paths.images),
        lock=read_lock(),
        date=asked.chosen_date(),
        base=asked.base or "",
        build=build and not look_only and site.scheduler in LOCAL,
        look_only=look_only,
        progress=(lambda _line: None) if quiet else say,
    )
    obtained = KINDS[kind].obtain(request)
    if kind in BUILT:  # what no stack can run is known before anybody builds it
        missing = {spec for spec, found in obtained.images.items() if found is None}
        stacks_for(sorted(missing - not_imported(site, missing)), site)
    add_rows(obtained.rows)
    return obtained.images


def not_imported(site: Site, specs: Iterable[str]) -> set[str]:
    """Images whose containers are built and locked, if the site's runtime needs them as squashfs files."""
    if kind_of(site) != "squashfs":
        return set()
    lock = read_lock()
    return {spec for spec in specs if lock.find(kind="docker", spec=spec, site=site.name) is not None}


def make_ready(image: Image) -> None:
    """Make sure that the image is on this machine and intact; raises DataError or MissingToolError."""
    KINDS[image.kind].ready(image)


def locked_rows(site: Site, specs: Sequence[str], date: str) -> list[LockRow]:
    """The row of every spec, of all where none is named; raises UsageError for one that isn't locked."""
    lock = read_lock()
    names = list(specs) or sorted({row.spec for row in lock.rows_of(site.name) if row.kind == "docker"})
    rows = {spec: lock.find(kind="docker", spec=spec, site=site.name, date=date) for spec in names}
    for spec, row in rows.items():
        if row is None:
            on = f" of {date}" if date else ""
            raise UsageError(
                f"images.lock.toml has no image {spec}{on} for site {site.name}",
                then=f"build it: {words(['gpubench', 'images', 'build', '--site', to_type(site.name), '--ucx', spec])}",
            )
    return [row for row in rows.values() if row]


SCRIPT = "import.sh"
_CAUSES: dict[int, type[GpubenchError]] = {
    error.exit_code: error for error in (DataError, MissingToolError, SchedulerError, InterruptedByUserError)
}


def import_images(site: Site, specs: Sequence[str], date: str, out: Path | None) -> None:
    """Write ``import.sh`` for the locked images; unless ``out`` only wants the script, run it as the profile says.

    Raises:
        UsageError: an image that isn't locked, or was never pushed.
        MissingToolError: no enroot or Apptainer where it runs, or the disk is full.
        SchedulerError: the registry refused or failed.
    """
    rows = locked_rows(site, specs, date)
    if not rows:
        raise UsageError(f"images.lock.toml has no image for site {site.name}", then="gpubench images build --push")
    items = [_item(row) for row in rows]
    folder = ImagePaths.of(site).squashfs
    own = RUNTIMES[site.runtime].PROGRAM
    program = site.imports.program or (own if own in PROGRAMS else "enroot")
    templates = resources.texts("templates", "importing/**/*.j2")
    script = render_import(items, str(folder), templates, program=program, gpubench=__version__)
    path = (out or Path(site.paths.outputs) / "images" / site.name) / SCRIPT
    write_atomically(path, script)
    words = [*site.imports.launch, "bash", str(path.resolve())]
    if out:
        say(f"{path} imports {counted(len(items), 'image')} into {folder}")
        return
    try:
        code = subprocess.run(words, check=False).returncode
    except OSError as error:
        raise MissingToolError(
            f"can't start {words[0]}: {error.strerror}; the script is {path}",
            then=f"run it on a machine with {program}: bash {path}",
        ) from None
    if code:
        raise _CAUSES.get(code, SchedulerError)(
            f"{path} ended with exit code {code}; its last lines say why", then="run it again: finished files are kept"
        )


def _item(row: LockRow) -> ImportItem:
    if not row.registry:
        raise UsageError(
            f"image {row.spec} of {row.date} is in the local engine only",
            then=f"push it: {words(['gpubench', 'images', 'push', row.spec, '--site', to_type(row.site)])}",
        )
    return ImportItem(
        spec=row.spec,
        registry=row.registry.removeprefix("https://"),
        tag=row.tag,
        date=row.date,
        digest=row.digest,
        build_id=row.build_id,
        architecture=row.architecture,
    )
