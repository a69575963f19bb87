"""The script that imports container images from a registry into squashfs files."""

import json
import re
from collections.abc import Mapping, Sequence

from gpubench.model.images_lock import LockRow
from gpubench.render.jinja import environment

SIDECAR = "gpubench/squashfs/1"
TEMPLATE = "importing/import.sh.j2"
PROGRAMS = {name: f"importing/{name}.sh.j2" for name in ("enroot", "apptainer")}
"""What can import, with the shell that does it."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]")


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
    rows: Sequence[LockRow], folder: str, templates: Mapping[str, str], *, program: str, gpubench: str
) -> str:
    """The script; it needs bash, coreutils, squashfs-tools and the program where it runs, nothing of ours.

    Args:
        rows: of images that were pushed.
        folder: of the squashfs files, as an absolute path.
        program: one of PROGRAMS.
    """
    images, template = [_arguments(row) for row in rows], environment(templates).get_template(TEMPLATE)
    return template.render(folder=folder, name=program, program=PROGRAMS[program], gpubench=gpubench, images=images)


def _arguments(row: LockRow) -> list[str]:
    registry = row.registry.removeprefix("https://")
    scheme, separator, name = registry.rpartition("://")
    host, _, repository = name.partition("/")
    if not repository or scheme not in ("", "http"):
        raise ValueError(f"not HOST[:PORT]/REPOSITORY: {registry!r}")
    facts = {
        "schema": SIDECAR,
        "digest": row.digest,
        "registry": registry,
        "tag": row.tag,
        "build_id": row.build_id,
        "ucx_spec": row.spec,
        "date": row.date,
        "architecture": row.architecture,
    }
    return [
        row.spec,
        f"{scheme}{separator}{host}",
        repository,
        row.digest,
        squashfs_name(row.digest).partition("/")[0],
        link_name(row.spec, row.date),
        row.architecture,
        row.build_id,
        json.dumps(facts)[:-1],  # the script adds what it finds out, and the brace
    ]
