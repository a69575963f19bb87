"""A built software environment that a run enters."""

from gpubench.model.base import Settings


class Image(Settings):
    """A built software environment that holds one UCX version.

    Args:
        kind: what it is, and so which runtimes can start it: see ``KINDS``.
        id: its identity, the same id is the same bytes: the content hash of a venv, conda prefix or set of modules, the
            digest (``sha256:…``) of a container image, also when it has been imported into a squashfs file.
        ucx_spec: what it was built of; of a branch or tag of a repository on this machine its commit, ``git:COMMIT``.
        ucx_version: full version of the UCX inside (``1.16.0.post1``), ``none`` for an image without UCX.
        binding: Dask's way to UCX, ``ucxx`` or ``ucx-py``; ``none`` where there is none.
        python: starts the node half, as a path inside the image.
        manifest: the hash under which the package list stands in the campaign's ``manifests/``.
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
