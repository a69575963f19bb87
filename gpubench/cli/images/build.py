"""Images for campaigns, and ``gpubench images``: build, push, lock."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench import __version__
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.images.lock_file import add_rows, read_lock
from gpubench.cli.say import say, warn
from gpubench.errors import GpubenchError, MissingToolError, PlanRefusedError, SchedulerError, UsageError
from gpubench.files import write_atomically
from gpubench.images import images_root
from gpubench.images.kinds import KINDS
from gpubench.images.requests import Found, Order
from gpubench.images.rows import reference
from gpubench.model.base import nearest
from gpubench.model.image import Image
from gpubench.model.images_lock import LockRow
from gpubench.model.recipe import Recipe
from gpubench.model.site import Site
from gpubench.render.context import BuildContext
from gpubench.runtimes import RUNTIMES
from gpubench.schedulers import ATTACHED

if TYPE_CHECKING:
    from gpubench.images.container_builds import BuiltContainer
    from gpubench.images.docker.build import Display
    from gpubench.images.docker.push import PushProgress

_NO_REGISTRY = "name it: --set image.registry=HOST/NAME"


def kind_of(site: Site) -> str:
    """The kind of images that the site's runtime starts.

    Raises:
        UsageError: no such runtime.
    """
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
    """One image per spec: what is locked, and where this machine is the site and ``build`` says so, what can be built.

    None stands for an image that must be built first. ``look_only``: nothing is built, whatever its kind.
    """
    order = Order(
        specs=specs,
        site=site,
        root=images_root(site.paths.images),
        lock=read_lock(),
        date=asked.chosen_date(),
        base=asked.base or "",
        build=build and not look_only and site.scheduler in ATTACHED,
        look_only=look_only,
        progress=_ignore if quiet else say,
    )
    obtained = KINDS[kind_of(site)].obtain(order)
    add_rows(obtained.rows)
    return obtained.images


def not_imported(site: Site, specs: Iterable[str]) -> set[str]:
    """Those whose containers are built and locked, where the site's runtime wants them as squashfs files."""
    if kind_of(site) != "squashfs":
        return set()
    lock = read_lock()
    return {spec for spec in specs if lock.find(kind="docker", spec=spec, site=site.name) is not None}


def make_ready(image: Image) -> None:
    """Have the image on this machine, sound; raises DataError or MissingToolError."""
    KINDS[image.kind].ready(image)


@dataclasses.dataclass(frozen=True)
class BuildRequest:
    """What ``images build`` was asked for."""

    site: Site
    specs: Sequence[str]
    date: str = ""
    stack: str = ""
    push: bool | None = None
    out: Path | None = None
    at_once: int = 2


def build(wish: BuildRequest) -> None:
    """Build (and push) an image per spec, whatever kind the site's runtime starts."""
    builder = _BUILDERS.get(kind_of(wish.site))
    if builder is None:
        raise PlanRefusedError(f"images of kind {kind_of(wish.site)} aren't built by gpubench")
    builder(wish)


def _build_venvs(wish: BuildRequest) -> None:
    if wish.push or wish.out:
        raise UsageError("images of kind venv are neither pushed nor written to --out", then="--runtime docker does")
    found = obtain_images(wish.site, wish.specs, CampaignOptions())
    for spec, entry in found.items():
        if entry:
            say(f"{spec}: {entry[0].id} {entry[0].python}")


def _build_containers(wish: BuildRequest) -> None:
    from gpubench.cli.images.build_progress import build_display
    from gpubench.images.container_builds import build_all_images, contexts, steps
    from gpubench.images.docker.engine import Engine
    from gpubench.images.recipes import recipes, unresolved

    site = wish.site
    _pushes(wish)
    wanted = recipes(wish.specs, site, stack=wish.stack)
    unpinned = contexts(wanted, None, gpubench=__version__)
    folder = _write_contexts(wish, unpinned)
    known = [recipe for recipe in wanted if not unresolved(recipe)]
    silent = _silent_repository([recipe for recipe in wanted if unresolved(recipe)], folder)
    if silent and not known:
        raise silent
    try:
        engine = Engine.connect()
        rendered = contexts(known, engine, gpubench=__version__)
    except MissingToolError as error:
        raise MissingToolError(f"{error.what}; Dockerfiles written to {folder}", then=error.then) from None
    _write_contexts(wish, rendered)
    with build_display(steps(known)) as show:
        built = build_all_images(
            engine,
            known,
            rendered,
            root=images_root(site.paths.images),
            date=wish.date,
            push=_pushes(wish),
            show=show,
            at_once=wish.at_once,
            keep=lambda row: add_rows([row]),
        )
    for row in filter(None, (one.row for one in built)):
        say(f"{row.spec}: {reference(row)}")
    failed = {one.recipe.spec: one for one in built if one.error}
    if failed and silent:
        warn(str(silent))
    if failed:
        raise _all_in_one(failed, len(wanted))
    if silent:
        raise silent


def _silent_repository(recipes: Sequence[Recipe], folder: Path) -> MissingToolError | None:
    """Why these can't be built, None where there are none."""
    if not recipes:
        return None
    specs = ", ".join(recipe.spec for recipe in recipes)
    return MissingToolError(
        f"{recipes[0].ucx_repository} doesn't say which commit {specs} is; Dockerfiles written to {folder}",
        then=f"try again, or pin it yourself: {recipes[0].spec}@COMMIT",
    )


def _pushes(wish: BuildRequest) -> bool:
    registry = wish.site.image.registry
    if wish.push and not registry:
        raise UsageError(f"site {wish.site.name} names no registry to push to", then=_NO_REGISTRY)
    return bool(registry) if wish.push is None else wish.push


def _build_conda(wish: BuildRequest) -> None:
    from gpubench.cli.images.prefixes import build_conda

    build_conda(wish)


def _build_modules(wish: BuildRequest) -> None:
    from gpubench.cli.images.prefixes import build_modules

    build_modules(wish)


_BUILDERS = {
    "conda": _build_conda,
    "docker": _build_containers,
    "modules": _build_modules,
    "squashfs": _build_containers,
    "venv": _build_venvs,
}


def _write_contexts(wish: BuildRequest, rendered: Mapping[str, BuildContext]) -> Path:
    """Every file that a build gets, for people and for engines elsewhere."""
    folder = wish.out or Path(wish.site.paths.outputs) / "images"
    for spec, context in rendered.items():
        for name, data in context.files.items():
            path = folder / f"{wish.site.name}-{spec.replace('/', '_')}" / name
            if not path.exists() or path.read_bytes() != data:
                write_atomically(path, data)
    return folder


def _all_in_one(failed: Mapping[str, BuiltContainer], count: int) -> GpubenchError:
    """What failed has been shown in full while it went on; here which, and where to read on."""
    kinds = {type(one.error) for one in failed.values() if one.error}
    kind = kinds.pop() if len(kinds) == 1 else SchedulerError
    logs = ", ".join(str(one.outcome.log) for one in failed.values())
    return kind(f"{len(failed)} of {count} images failed: {', '.join(failed)}", then=f"see {logs}")


def push(site: Site, specs: Sequence[str], date: str) -> None:
    """Push locked local images to the site's registry, and lock what the registry calls them."""
    from gpubench.cli.images.build_progress import build_display
    from gpubench.images.docker.engine import Engine

    registry = site.image.registry
    if not registry:
        raise UsageError(f"site {site.name} names no registry to push to", then=_NO_REGISTRY)
    rows = [row for row in locked_rows(site, specs, date) if row.registry != registry]
    engine = Engine.connect()
    with build_display([row.spec for row in rows]) as show:
        for row in rows:
            engine.ensure(reference(row))
            digest = engine.push(reference(row), registry, row.tag, functools.partial(_show_push, show, row.spec))
            show.done(row.spec)
            pushed = row.model_copy(update={"registry": registry, "digest": digest})
            add_rows([pushed])
            say(f"{row.spec}: {reference(pushed)}")
    if not rows:
        say(f"nothing to push: {', '.join(specs) or 'every image'} is in {registry} already")


def _show_push(show: Display, name: str, progress: PushProgress) -> None:
    show.step(name, progress.text, progress.share)


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
                then=f"build it: gpubench images build {spec} --site {site.name}",
            )
    return [row for row in rows.values() if row]


def _ignore(_line: str) -> None:
    """Progress that nobody wants to read."""
