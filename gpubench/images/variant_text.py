"""A planned variant in words."""

import re

from gpubench.images.ucx_specs import named
from gpubench.model.plan import PlannedVariant
from gpubench.model.variant import ImageSpec

_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")


def variant_text(variant: PlannedVariant, absent: str = "not built") -> str:
    """``UCX 1.19.0 dask==2025.7.0 UCX_TLS=tcp``; ``absent`` says why it has no image."""
    spec = ImageSpec.parse(variant.ucx)
    version = variant.image.ucx_version if variant.image else named(spec.ucx)
    if variant.image and (commit := _COMMIT.search(ImageSpec.parse(variant.image.ucx_spec).ucx)):
        version += f" of commit {commit[0][:12]}"
    stack = f" stack={spec.stack}" if spec.stack else ""
    settings = [f"{name}=={pinned}" for name, pinned in spec.packages.items()]
    settings += [f"{key}={value}" for key, value in variant.env.items()]
    missing = "" if variant.image else f", {absent}"
    return f"UCX {version}{stack}{''.join(f' {setting}' for setting in settings)}{missing}"
