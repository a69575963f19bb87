"""Build and push images, whatever kind of images the site's runtime starts."""

import contextlib
import dataclasses
import datetime as dt
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpubench import resources
from gpubench.errors import GpubenchError, MissingToolError, PlanRefusedError, SchedulerError, UsageError
from gpubench.files import write_atomically
from gpubench.images.container_builds import build_all_images, contexts
from gpubench.images.docker.build import find_builder
from gpubench.images.docker.engine import Engine
from gpubench.images.kinds.base import images_root
from gpubench.images.kinds.conda import make_prefix
from gpubench.images.kinds.modules import describe_modules
from gpubench.images.lock import add_rows, locked_rows, read_lock
from gpubench.images.manifests import reference
from gpubench.images.obtain import kind_of, obtain_images
from gpubench.images.recipes import recipes, unresolved
from gpubench.images.ucx_specs import parse
from gpubench.model.images_lock import LockRow
from gpubench.model.recipe import Recipe
from gpubench.model.site import Site
from gpubench.render.conda import LOAD_SCRIPT, render_modules, render_prefix
from gpubench.resources.profiles import outputs_of

_log = logging.getLogger(__name__)

Make = Callable[[], LockRow]


@dataclasses.dataclass(frozen=True)
class BuildRequest:
    """What to build, and what is chosen for it."""

    site: Site
    specs: Sequence[str]
    date: str = ""
    stack: str = ""
    push: bool | None = None
    out: Path | None = None


def build(request: BuildRequest) -> None:
    """Build (and push) an image per spec."""
    kind = kind_of(request.site)
    if kind not in _BUILDERS:
        raise PlanRefusedError(f"gpubench doesn't build images of kind {kind}")
    _BUILDERS[kind](request)


def _build_venvs(request: BuildRequest) -> None:
    if request.push or request.out:
        raise UsageError("images of kind venv are neither pushed nor written to --out", then="take --runtime docker")
    if request.stack:
        first = f"{request.specs[0]},stack={request.stack}"
        raise UsageError(
            "--stack is for images that are built by name; of kind venv, each version says its stack",
            then=f"write {first}, here and as a variant of gpubench bench",
        )
    if request.date:
        raise UsageError("--date chooses among images in images.lock.toml; images of kind venv have no date")
    images = obtain_images(request.site, request.specs)
    for spec, entry in images.items():
        if entry:
            _log.info(f"{spec}: {entry[0].id} {entry[0].python}")


def _build_containers(request: BuildRequest) -> None:
    registry = _registry(request.site) if request.push else request.site.image.registry
    chosen_recipes = recipes(request.specs, request.site, stack=request.stack)
    for spec, context in contexts(chosen_recipes, None).items():
        _write(request, spec, context.files)
    open_refs = [recipe for recipe in chosen_recipes if unresolved(recipe)]
    resolved_recipes = [recipe for recipe in chosen_recipes if not unresolved(recipe)]
    silent = _unresolved(open_refs, f"Dockerfiles written to {_folder(request)}") if open_refs else None
    if silent and not resolved_recipes:
        raise silent
    with contextlib.ExitStack() as stack:
        try:
            engine = stack.enter_context(Engine.connect())
            find_builder(engine)
            rendered = contexts(resolved_recipes, engine)
        except MissingToolError as error:
            what = f"{error.what}; Dockerfiles written to {_folder(request)}"
            raise MissingToolError(what, then=error.then) from None
        for spec, context in rendered.items():
            _write(request, spec, context.files)
        results = build_all_images(
            engine,
            resolved_recipes,
            rendered,
            root=images_root(request.site.paths.images),
            date=request.date,
            push=bool(registry) if request.push is None else request.push,
        )
    failed = {spec: result for spec, result in results.items() if isinstance(result, GpubenchError)}
    if failed and silent:
        _log.warning(str(silent))
    if failed:
        raise _summary(failed, len(chosen_recipes), SchedulerError)
    if silent:
        raise silent


def _build_conda(request: BuildRequest) -> None:
    """Write the scripts of every prefix, and run them one after the other; finished prefixes are left alone."""
    _refuse_push(request)
    conda_recipes = recipes(request.specs, request.site, stack=request.stack)
    root = images_root(request.site.paths.images).resolve()
    templates, sources = resources.texts("templates", "conda/*.j2"), resources.docker_sources()
    makers: dict[str, Make] = {}
    for recipe in conda_recipes:
        prefix = render_prefix(recipe, templates, sources, str(root))
        folder = _write(request, recipe.spec, prefix.files)
        makers[recipe.spec] = functools.partial(make_prefix, recipe, prefix, folder, root)
    for recipe in filter(unresolved, conda_recipes):
        raise _unresolved([recipe], f"scripts written to {_folder(request, recipe.spec)}")
    _make(request, makers)


def _build_modules(request: BuildRequest) -> None:
    """Write the load lines for every version, load them, and lock what they bring."""
    _refuse_push(request)
    site, settings = request.site, request.site.image
    if not settings.modules and not settings.prefix:
        raise UsageError(f"site {site.name} names neither modules nor a prefix", then="see image.modules, image.prefix")
    if request.stack:
        raise UsageError("--stack is for packages that gpubench installs; modules bring their own")
    root = images_root(site.paths.images).resolve()
    templates = resources.texts("templates", "modules/*.j2")
    makers: dict[str, Make] = {}
    for spec in request.specs:
        parse(spec)
        text = render_modules(site.name, settings, spec, templates)
        load = _write(request, spec, {LOAD_SCRIPT: text.encode()}) / LOAD_SCRIPT
        makers[spec] = functools.partial(describe_modules, spec, site, load, root)
    _make(request, makers)


_BUILDERS: dict[str, Callable[[BuildRequest], None]] = {
    "conda": _build_conda,
    "docker": _build_containers,
    "modules": _build_modules,
    "squashfs": _build_containers,
    "venv": _build_venvs,
}


def _make(request: BuildRequest, makers: Mapping[str, Make]) -> None:
    """Build all, even if one fails; then raise an error that names the failed ones, or the only failure."""
    failed: dict[str, GpubenchError] = {}
    for spec, make in makers.items():
        _log.info(f"building {spec}")
        try:
            row = _dated(make(), request.date)
        except GpubenchError as error:
            failed[spec] = error
            if len(makers) > 1:
                _log.warning(f"{spec}: failed: {error}")
            continue
        add_rows([row])
        _log.info(f"{spec}: {row.digest} {row.python}")
    if failed:
        raise _summary(failed, len(makers), MissingToolError) if len(makers) > 1 else failed.popitem()[1]


def _dated(row: LockRow, date: str) -> LockRow:
    """Add the date of the build; an image that is locked already keeps its date."""
    locked = read_lock().find(kind=row.kind, spec=row.spec, site=row.site, date=date)
    if locked and locked.model_copy(update={"date": ""}) == row:
        return locked
    return row.model_copy(update={"date": date or dt.datetime.now().astimezone().strftime("%Y%m%d")})


def _folder(request: BuildRequest, spec: str = "") -> Path:
    """Where every file that a build reads is written, for people and for engines elsewhere; of one spec, or of all."""
    folder = request.out or outputs_of(request.site, None) / "images"
    return folder / f"{request.site.name}-{spec.replace('/', '_')}" if spec else folder


def _write(request: BuildRequest, spec: str, files: Mapping[str, bytes]) -> Path:
    folder = _folder(request, spec)
    for name, data in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != data:
            write_atomically(path, data)
    return folder


def _unresolved(unresolved_recipes: Sequence[Recipe], written: str) -> MissingToolError:
    specs = ", ".join(recipe.spec for recipe in unresolved_recipes)
    return MissingToolError(
        f"{unresolved_recipes[0].ucx_repository} doesn't say which commit {specs} is; {written}",
        then=f"try again, or pin it yourself: {unresolved_recipes[0].spec}@COMMIT",
    )


def _summary(failed: Mapping[str, GpubenchError], count: int, otherwise: type[GpubenchError]) -> GpubenchError:
    """An error that names the failed ones: of their common class, or of class ``otherwise``."""
    kinds = {type(error) for error in failed.values()}
    kind = kinds.pop() if len(kinds) == 1 else otherwise
    return kind(f"{len(failed)} of {count} images failed: {', '.join(failed)}")


def _refuse_push(request: BuildRequest) -> None:
    if request.push:
        raise UsageError(
            f"images of runtime {request.site.runtime} are on a file system and aren't pushed", then="leave --push out"
        )


def _registry(site: Site) -> str:
    if not site.image.registry:
        raise UsageError(
            f"site {site.name} names no registry to push to", then="name it: --set image.registry=HOST/NAME"
        )
    return site.image.registry


def push(site: Site, specs: Sequence[str], date: str) -> None:
    """Push locked local images to the site's registry, and lock what the registry calls them."""
    registry = _registry(site)
    rows = [row for row in locked_rows(site, specs, date) if row.registry != registry]
    with Engine.connect() as engine:
        for row in rows:
            _log.info(f"{row.spec}: pushing to {registry}")
            engine.ensure(reference(row))
            digest = engine.push(reference(row), registry, row.tag)
            pushed = row.model_copy(update={"registry": registry, "digest": digest})
            add_rows([pushed])
            _log.info(f"{row.spec}: {reference(pushed)}")
    if not rows:
        _log.info(f"nothing to push: {', '.join(specs) or 'every image'} is in {registry} already")
