"""A built software environment that a run enters, and its three ids: of what went in, what came out, what it says."""

from collections.abc import Mapping
from typing import Any

from gpubench.model.base import Settings
from gpubench.node.spec.plain import content_id


class Image(Settings):
    """A built software environment that holds one UCX version.

    Three hashes name it. ``build_id`` is of what goes in (recipe, templates, files): known before the build, and the
    same for two builds of one recipe, whose bytes may differ. ``id`` is of what came out. ``manifest`` is of the
    document in which the image says what it is made of: two images of other bytes may say the same. Of conda prefixes
    and modules, which have no hash of their own bytes, ``id`` is ``manifest``.

    Args:
        kind: what it is, and so which runtimes can start it: see ``KINDS``.
        id: the same id is the same bytes: the content hash of a venv (``image_id`` in ``images/kinds/venvs.py``), the
            digest (``sha256:…``) of a container image, also when it has been imported into a squashfs file; of conda
            prefixes and modules their ``manifest``. The lock calls it ``digest``.
        ucx_spec: what it was built of; of a branch or tag of a repository on this machine its commit, ``git:COMMIT``.
        ucx_version: full version of the UCX inside (``1.16.0.post1``), ``none`` for an image without UCX.
        binding: Dask's way to UCX, ``ucxx`` or ``ucx-py``; ``none`` where there is none.
        python: starts the node half, as a path inside the image.
        manifest: ``manifest_id`` of its manifest.
        reference: how the runtime names it: ``HOST/REPO@sha256:…`` or a local image's ``sha256:…`` (docker), the file's
            path (squashfs), the prefix (conda), the file that loads them (modules); empty for a venv.
        build_id: what ``build_manifest`` inside the image must say when a run starts; empty: nothing to compare.
        build_manifest: path of that file inside the image.
    """

    kind: str
    id: str
    ucx_spec: str
    ucx_version: str
    binding: str
    python: str
    env: dict[str, str]
    manifest: str
    reference: str = ""
    build_id: str = ""
    build_manifest: str = ""


def manifest_id(document: Mapping[str, Any]) -> str:
    """The hash under which a manifest stands in a campaign's ``manifests/``."""
    return content_id(document)


UNRESOLVED = Image(
    kind="unresolved",
    id="unresolved",
    ucx_spec="",
    ucx_version="",
    binding="",
    python="python3",
    env={},
    manifest="",
    reference="unresolved",
)
"""Stands where a variant's image isn't built yet."""
