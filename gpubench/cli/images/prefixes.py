"""``gpubench images build`` for conda prefixes and modules: images on a file system that every node sees."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpubench import resources
from gpubench.cli.images.build import BuildRequest
from gpubench.cli.images.build_progress import build_display
from gpubench.cli.images.lock import add_rows, read_lock
from gpubench.cli.say import say
from gpubench.errors import GpubenchError, MissingToolError, UsageError
from gpubench.files import write_atomically
from gpubench.images import images_root
from gpubench.images.kinds.base import Step
from gpubench.images.kinds.conda import make_prefix
from gpubench.images.kinds.modules import describe_modules
from gpubench.images.recipes import recipes, unresolved
from gpubench.images.specs import parse
from gpubench.model.images_lock import LockRow
from gpubench.render.conda import render_prefix
from gpubench.render.modules import SCRIPT, render_modules

Make = Callable[[Step], LockRow]


def build_conda(wish: BuildRequest) -> None:
    """Write the scripts of every prefix, and run them one after the other; finished prefixes are left alone.

    Raises:
        UsageError: they were to be pushed.
        MissingToolError: no conda here (the scripts are written), an open commit, a build that failed.
        DataError: a prefix isn't what its recipe says.
    """
    _refuse_push(wish)
    wanted = recipes(wish.specs, wish.site, stack=wish.stack)
    root = images_root(wish.site.paths.images).resolve()
    templates, sources = resources.texts("templates", "conda/*.j2"), resources.docker_sources()
    prefixes = {recipe.spec: render_prefix(recipe, templates, sources, str(root)) for recipe in wanted}
    folders = {spec: _write(wish, spec, prefix.files) for spec, prefix in prefixes.items()}
    for recipe in filter(unresolved, wanted):
        raise MissingToolError(
            f"{recipe.ucx_repository} doesn't say which commit {recipe.spec} is; scripts written to "
            f"{folders[recipe.spec]}",
            then=f"try again, or pin it yourself: {recipe.spec}@COMMIT",
        )
    _build(
        wish,
        {one.spec: functools.partial(make_prefix, one, prefixes[one.spec], folders[one.spec], root) for one in wanted},
    )


def build_modules(wish: BuildRequest) -> None:
    """Write the load lines for every version, load them, and lock what they bring.

    Raises:
        UsageError: they were to be pushed, or the profile names no modules.
        MissingToolError: no ``module`` command here; the lines are written.
        DataError: what they bring isn't what was asked for.
    """
    _refuse_push(wish)
    site, settings = wish.site, wish.site.image
    if not settings.modules and not settings.prefix:
        raise UsageError(f"site {site.name} names neither modules nor a prefix", then="see image.modules, image.prefix")
    if wish.stack:
        raise UsageError("--stack is for packages that gpubench installs; modules bring their own")
    root = images_root(site.paths.images).resolve()
    templates = resources.texts("templates", "modules/*.j2")
    makers: dict[str, Make] = {}
    for spec in wish.specs:
        parse(spec)
        text = render_modules(site.name, settings, spec, templates)
        load = _write(wish, spec, {SCRIPT: text.encode()}) / SCRIPT
        makers[spec] = functools.partial(describe_modules, spec, site, load, root)
    _build(wish, makers)


def _refuse_push(wish: BuildRequest) -> None:
    if wish.push:
        raise UsageError(
            f"images of runtime {wish.site.runtime} lie on a file system and aren't pushed", then="leave --push out"
        )


def _write(wish: BuildRequest, spec: str, files: Mapping[str, bytes]) -> Path:
    """Every file that a build reads, for people and for other machines."""
    folder = (wish.out or Path(wish.site.paths.outputs) / "images") / f"{wish.site.name}-{spec.replace('/', '_')}"
    for name, data in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != data:
            write_atomically(path, data)
    return folder


def _build(wish: BuildRequest, makers: Mapping[str, Make]) -> None:
    """One that fails leaves the others; then which failed, or the one failure itself."""
    failed: dict[str, GpubenchError] = {}
    rows: list[LockRow] = []
    with build_display(list(makers)) as show:
        for spec, make in makers.items():
            try:
                row = make(functools.partial(show.step, spec))
            except GpubenchError as error:
                failed[spec] = error
                if len(makers) > 1:
                    show.fail(spec, str(error))
                continue
            show.done(spec)
            rows.append(_dated(row, wish.date))
    add_rows(rows)
    for row in rows:
        say(f"{row.spec}: {row.digest} {row.python}")
    if failed:
        raise _all_in_one(list(failed.items()), len(makers))


def _dated(row: LockRow, date: str) -> LockRow:
    """With the date of the build: an image that is locked already keeps its own."""
    known = read_lock().find(kind=row.kind, spec=row.spec, site=row.site, date=date)
    if known and known.model_copy(update={"date": ""}) == row:
        return known
    return row.model_copy(update={"date": date or dt.datetime.now().astimezone().strftime("%Y%m%d")})


def _all_in_one(failed: Sequence[tuple[str, GpubenchError]], count: int) -> GpubenchError:
    if count == 1:
        return failed[0][1]
    kinds = {type(error) for _, error in failed}
    kind = kinds.pop() if len(kinds) == 1 else MissingToolError
    return kind(f"{len(failed)} of {count} images failed: {', '.join(spec for spec, _ in failed)}")
