"""``gpubench images list``."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from gpubench.cli.say import say, say_text
from gpubench.cli.terminal import Terminal
from gpubench.errors import UsageError
from gpubench.images import manifests
from gpubench.images.kinds import KINDS
from gpubench.images.kinds.base import Entry, ImagePaths, ImageRequest, images_root, of_lock
from gpubench.images.lock import locked_rows, read_lock
from gpubench.images.obtain import kind_of
from gpubench.model.quantities import format_bytes
from gpubench.model.site import Site
from gpubench.profiles import load_site, site_names, to_type
from gpubench.render.environment import words

COLUMNS = ("version", "UCX", "kind", "site", "date", "stack", "digest or content", "where", "size")
WIDTH = 200
"""Columns of the table, also of a narrower terminal, which wraps the lines: digests stay whole."""


def list_images(site: str | None, *, as_json: bool) -> None:
    """A row per image, or JSON with the same fields."""
    chosen = [load_site(name) for name in ([site] if site else site_names())]
    rows = read_lock().image
    found = of_lock([row for row in rows if row.site == chosen[0].name] if site else rows)
    for paths in sorted({ImagePaths.of(one) for one in chosen}):
        for kind in KINDS.values():
            found += kind.entries(paths)
    entries = list({(one.kind, one.spec, one.site, one.date, one.where): one for one in found}.values())
    if as_json:
        say_text(json.dumps({"images": [entry.plain() for entry in entries]}, indent=1))
        return
    if not entries:
        say("no image yet; for example: gpubench images build --ucx 1.16.0, or gpubench bench, which builds them")
        return
    Terminal(width=WIDTH).print(_table(entries))


def show_image(site: Site, spec: str, date: str) -> None:
    """The lock row, the manifest, and every package."""
    document: Mapping[str, Any]
    if read_lock().find(kind="docker", spec=spec, site=site.name, date=date):
        (row,) = locked_rows(site, [spec], date)
        found = manifests.manifest_of(images_root(site.paths.images), row)
        if found is None:
            raise UsageError(
                f"the manifest of image {spec} ({row.digest}) isn't on this machine, and the image was never pushed",
                then=f"where it was built: {words(['gpubench', 'images', 'push', spec, '--site', to_type(site.name)])}",
            )
        document, head = found, row.model_dump()
    else:
        request = ImageRequest([spec], site, images_root(site.paths.images), read_lock(), build=False, progress=say)
        entry = KINDS[kind_of(site)].obtain(request).images[spec]
        if entry is None:
            raise UsageError(
                f"there is no image {spec} for site {site.name}",
                then=words(["gpubench", "images", "build", "--site", to_type(site.name), "--ucx", spec]),
            )
        image, document = entry
        head = image.model_dump(exclude={"env"}) | {"env": image.env}
    for name, value in head.items():
        if value:
            say(f"{name:<14} {_words(value)}")
    for section in ("ucx", "stack", "binding"):
        say("")
        say(section)
        for name, value in document[section].items():
            if not isinstance(value, Mapping):
                say(f"  {name:<12} {_words(value)}")
    packages = document["stack"]["packages"]
    say("")
    say(f"packages ({len(packages)})")
    for name, version in packages.items():
        say(f"  {name} {version}")


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={word}" for key, word in value.items())
    return str(value)


def _table(entries: Sequence[Entry]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, overflow="fold", justify="right" if name == "size" else "left")
    for one in entries:
        size = format_bytes(one.size) if one.size else ""
        words = (one.spec, one.ucx, one.kind, one.site, one.date, one.stack, one.identity, one.where, size)
        table.add_row(*map(Text, words))
    return table
