"""``images.lock.toml``: which image a version means on a site, by digest. Pure; the front end reads and writes it."""

from collections.abc import Iterable
from typing import Any, Literal

import pydantic
import tomli_w

from gpubench.errors import DataError
from gpubench.model.base import Settings, parse_toml
from gpubench.model.image import manifest_id

IMAGES_LOCK = "gpubench/images-lock/1"
LOCK_FILE = "images.lock.toml"


class LockRow(Settings):
    """One built image; ``digest``, ``build_id`` and ``manifest`` are its three ids (see ``Image``).

    Args:
        kind: ``docker``, ``conda`` or ``modules``; a venv is found by its folder and needs no row.
        spec: the UCX spec as typed.
        registry: ``HOST[:PORT]/REPOSITORY`` that it was pushed to; empty: it is in the local engine only.
        date: ``YYYYMMDD`` of the build, part of the tag.
        tag: ``ucx-py-<version>-<date>``.
        digest: ``Image.id``; of a container image ``sha256:…`` of the registry's manifest, or of the local image while
            it isn't pushed. Other names of the image may move, this one can't.
        build_id: stands in ``/gpubench/manifest.json`` inside; the supervisor compares it at the start of every run.
        ucx_commit: that a git ref was resolved to; empty for wheels and distributions.
        binding: ``ucxx``, ``ucx-py`` or ``none``.
        architecture: as ``uname -m`` says it.
        base: the image that the build started from, as typed.
        document: the image's own manifest, so that a plan needs neither the image nor its registry.
    """

    kind: Literal["docker", "conda", "modules"]
    spec: str
    site: str
    registry: str = ""
    date: str
    tag: str = ""
    digest: str
    build_id: str
    ucx_version: str
    ucx_commit: str = ""
    binding: str
    stack: str
    python: str
    env: dict[str, str] = pydantic.Field(default_factory=dict)
    architecture: str
    base: str = ""
    document: dict[str, Any]

    @property
    def manifest(self) -> str:
        """``Image.manifest``."""
        return manifest_id(self.document)

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """What a row is the only one of."""
        return (self.kind, self.spec, self.site, self.registry, self.date)

    @property
    def day(self) -> tuple[str, str, str, str]:
        """What of one day is the same image, wherever it lies, or one in place of another."""
        return (self.kind, self.spec, self.site, self.date)

    @property
    def build(self) -> tuple[str, ...]:
        """The same for what a build was made of and what came out."""
        return (*self.day, self.build_id, self.manifest)


class ImagesLock(Settings):
    """All rows, sorted by place."""

    schema_: str = pydantic.Field(alias="schema", default=IMAGES_LOCK)
    image: list[LockRow] = pydantic.Field(default_factory=list)

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @staticmethod
    def parse(text: str, source: str) -> "ImagesLock":
        """Read the file; raises DataError for another schema, UsageError for what can't be read."""
        plain = parse_toml(text, source)
        if plain.get("schema") != IMAGES_LOCK:
            raise DataError(
                f"{source} is not a {IMAGES_LOCK}", then="remove it, and run gpubench images list --registry"
            )
        return ImagesLock.of(plain, source)

    def dump(self) -> str:
        """TOML text; the same rows give the same bytes."""
        rows = [row.model_dump(exclude_defaults=True) for row in self.image]
        head = "# Which image a version means, by digest. Written by gpubench images; meant to be committed.\n"
        return head + tomli_w.dumps({"schema": IMAGES_LOCK, "image": rows})

    def with_rows(self, rows: Iterable[LockRow]) -> "ImagesLock":
        """This lock with ``rows`` in place of those of the same place.

        A local row goes when its build is pushed, or a later one of that day: one that stands beside a pushed row is
        the newer build of the two, since a date tells days only.
        """
        new = list(rows)
        places = {row.place: row for row in (*self.image, *new)}
        pushed = {row.build for row in places.values() if row.registry}
        moved = {row.day for row in new if row.registry} - {row.day for row in new if not row.registry}
        kept = [
            place for place, row in places.items() if row.registry or (row.build not in pushed and row.day not in moved)
        ]
        return self.model_copy(update={"image": [places[place] for place in sorted(kept)]})

    def find(self, *, kind: str, spec: str, site: str, date: str = "", pushed: bool = False) -> LockRow | None:
        """The row that a spec means on a site: of that date, else the newest; ``pushed``: of those in a registry."""
        fitting = [
            row
            for row in self.image
            if (row.kind, row.spec, row.site) == (kind, spec, site)
            and date in ("", row.date)
            and (row.registry or not pushed)
        ]
        return max(fitting, key=lambda row: (row.date, not row.registry), default=None)
