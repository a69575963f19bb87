"""The script that imports container images from a registry into squashfs files."""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence

from gpubench.render.jinja import environment

SIDECAR = "gpubench/squashfs/1"
TEMPLATE = "importing/import.sh.j2"
PROGRAMS = {name: f"importing/{name}.sh.j2" for name in ("enroot", "apptainer")}
"""What can import, with the shell that does it."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]")


@dataclasses.dataclass(frozen=True)
class ImportItem:
    """One image to import.

    Args:
        registry: ``[http://]HOST[:PORT]/REPOSITORY``.
        tag: under which it was pushed; for people, what is fetched is ``digest``.
        date: ``YYYYMMDD`` of the build.
        digest: ``sha256:<64 hex>`` of the registry's manifest.
        build_id: what the manifest inside must say; empty: nothing to compare.
        architecture: as ``uname -m`` says it.
    """

    spec: str
    registry: str
    tag: str
    date: str
    digest: str
    build_id: str
    architecture: str


def squashfs_name(digest: str) -> str:
    """Path of the squashfs file below the folder: ``sha256-<64 hex>/image.sqsh``, its sidecar adds ``.json``.

    File and sidecar are in one directory because one rename then publishes both: no reader sees one without the other,
    or a sidecar of other bytes. The digest isn't shortened: people read the link, and short names might collide.

    Raises:
        ValueError: not a sha256 digest.
    """
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"not a digest: {digest!r}")
    return f"{digest.replace(':', '-')}/image.sqsh"


def link_name(spec: str, date: str) -> str:
    """The name for people, ``ucx-py-<spec>-<date>.sqsh``: a link that moves with every build of that day."""
    return f"ucx-py-{_NOT_IN_A_NAME.sub('-', spec)}-{date}.sqsh"


def render_import(
    items: Sequence[ImportItem], folder: str, templates: Mapping[str, str], *, program: str, gpubench: str
) -> str:
    """The script; it needs bash, coreutils, squashfs-tools and the program where it runs, nothing of ours.

    Args:
        folder: of the squashfs files, as an absolute path.
        program: one of PROGRAMS.
    """
    return (
        environment(templates)
        .get_template(TEMPLATE)
        .render(
            folder=folder,
            name=program,
            program=PROGRAMS[program],
            gpubench=gpubench,
            images=[_arguments(item) for item in items],
        )
    )


def _arguments(item: ImportItem) -> list[str]:
    scheme, separator, name = item.registry.rpartition("://")
    host, _, repository = name.partition("/")
    if not repository or scheme not in ("", "http"):
        raise ValueError(f"not HOST[:PORT]/REPOSITORY: {item.registry!r}")
    facts = {
        "schema": SIDECAR,
        "digest": item.digest,
        "registry": item.registry,
        "tag": item.tag,
        "build_id": item.build_id,
        "ucx_spec": item.spec,
        "date": item.date,
        "architecture": item.architecture,
    }
    return [
        item.spec,
        f"{scheme}{separator}{host}",
        repository,
        item.digest,
        squashfs_name(item.digest).partition("/")[0],
        link_name(item.spec, item.date),
        item.architecture,
        item.build_id,
        json.dumps(facts)[:-1],  # the script adds what it finds out, and the brace
    ]
