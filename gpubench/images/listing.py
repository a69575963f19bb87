"""Which images there are, and what is known of one."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpubench.errors import UsageError
from gpubench.images.kinds import KINDS
from gpubench.images.kinds.base import Entry, ImagePaths, ImageRequest, of_lock
from gpubench.images.lock import lock_registry, read_lock
from gpubench.images.obtain import kind_of
from gpubench.model.site import Site
from gpubench.render.shell import command_line
from gpubench.resources.profiles import load_site, site_names, to_type


def images_of(site: str | None) -> list[Entry]:
    """Every image of a site, or of every shipped profile: the locked ones, and those on this machine."""
    chosen = [load_site(name) for name in ([site] if site else site_names())]
    rows = read_lock().image
    entries = of_lock([row for row in rows if row.site == chosen[0].name] if site else rows)
    for paths in sorted({ImagePaths.of(profile) for profile in chosen}):
        for kind in KINDS.values():
            entries += kind.entries(paths)
    return list({(entry.kind, entry.spec, entry.site, entry.date, entry.where): entry for entry in entries}.values())


def images_in_registry(site: Site) -> list[Entry]:
    """The images of a site that its registry holds; they are locked. Raises as ``lock_registry``."""
    return of_lock(lock_registry(site))


def image_lines(site: Site, spec: str, date: str) -> Iterator[str]:
    """The lock row, the manifest, and every package; raises UsageError where there is no such image."""
    row = read_lock().find(kind="docker", spec=spec, site=site.name, date=date)
    if row:
        document, head = row.document, row.model_dump(exclude={"document"}) | {"manifest": row.manifest}
    else:
        request = ImageRequest([spec], site, read_lock(), build=False, look_only=True)
        entry = KINDS[kind_of(site)].obtain(request)[spec]
        if entry is None:
            raise UsageError(
                f"there is no image {spec} for site {site.name}",
                then=command_line(["gpubench", "images", "build", *to_type(site.name), "--ucx", spec]),
            )
        document, head = dict(entry[1]), entry[0].model_dump(exclude={"env"}) | {"env": entry[0].env}
    for name, value in head.items():
        if value:
            yield f"{name:<14} {_text(value)}"
    for section in ("ucx", "stack", "binding"):
        yield ""
        yield section
        for name, value in document[section].items():
            if not isinstance(value, Mapping):
                yield f"  {name:<12} {_text(value)}"
    packages = document["stack"]["packages"]
    yield ""
    yield f"packages ({len(packages)})"
    for name, version in packages.items():
        yield f"  {name} {version}"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={word}" for key, word in value.items())
    return str(value)
