"""Images: built software environments that hold one UCX version each."""

from gpubench.images.kinds.base import images_root
from gpubench.images.kinds.venvs import ensure, verify
from gpubench.images.manifests import MANIFEST, differences, manifest_id

__all__ = ["MANIFEST", "differences", "ensure", "images_root", "manifest_id", "verify"]
