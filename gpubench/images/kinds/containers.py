"""Kind ``docker``: container images, known by their digests in ``images.lock.toml``."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from gpubench.images.kinds.base import ImageRequest, Obtained, no_entries
from gpubench.images.manifests import docker_image
from gpubench.images.recipes import recipes
from gpubench.model.image import Image
from gpubench.model.images_lock import LockRow

if TYPE_CHECKING:
    from gpubench.images.docker.engine import Engine

ON_DEMAND = False
entries = no_entries


def obtain(request: ImageRequest) -> Obtained:
    """What is locked; what isn't is built on this machine's engine where ``request.build`` says so, and not pushed.

    Raises:
        MissingToolError: Docker isn't running, an image can't be pulled.
        PlanRefusedError, UsageError: as ``recipes``.
        SchedulerError: a build failed.
    """
    rows: dict[str, LockRow | None] = {spec: _row(request, spec) for spec in request.specs}
    missing = [spec for spec, row in rows.items() if row is None]
    if missing and request.build:
        rows |= _build(request, missing)
    return {spec: (docker_image(row), row.document) if row else None for spec, row in rows.items()}


def ready(image: Image) -> None:
    """Have the image in this machine's engine, pulled by its digest if need be; raises as ``Engine``."""
    with _engine() as engine:
        engine.ensure(image.reference)


def _engine() -> Engine:
    # Late: the Docker SDK takes half a second, and few plans ask an engine.
    from gpubench.images.docker.engine import Engine  # noqa: PLC0415

    return Engine.connect()


def _row(request: ImageRequest, spec: str) -> LockRow | None:
    find = functools.partial(request.lock.find, kind="docker", spec=spec, site=request.site.name)
    row = find(date=request.date)
    if row is None or not request.build:
        return row
    if not row.registry:
        with _engine() as engine:
            if not engine.has(row.digest):
                row = find(date=row.date, pushed=True)  # the local one lies on another machine
    return row if row and request.base in ("", row.base) else None


def _build(request: ImageRequest, specs: list[str]) -> dict[str, LockRow]:
    from gpubench.images.container_builds import build_all_images, contexts  # noqa: PLC0415 - as above

    chosen_recipes = recipes(specs, request.site)
    with _engine() as engine:
        built = build_all_images(engine, chosen_recipes, contexts(chosen_recipes, engine), root=request.paths.root)
    rows = {}
    for spec, result in built.items():
        if not isinstance(result, LockRow):
            raise result
        rows[spec] = result
    return rows
