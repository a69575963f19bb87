"""The build id of this process's image, from the image itself."""

import json
from pathlib import Path

from gpubench.node.spec import RunSpec


class WrongImageError(Exception):
    """The container was started from another build than the planned one."""


def read_build_id(path: str) -> str:
    """The build id in the image's manifest at ``path``; empty where there is none or it can't be read."""
    try:
        return str(json.loads(Path(path).read_text(encoding="utf-8"))["build_id"]) if path else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def check_build(spec: RunSpec) -> None:
    """Raise WrongImageError unless this is the planned build; nothing is checked where none is planned."""
    build = read_build_id(spec.build_manifest)
    if spec.build_id and build != spec.build_id:
        what = f"build {build}" if build else "no build id"
        raise WrongImageError(
            f"the image of variant {spec.variant} has {what} in {spec.build_manifest}, planned {spec.build_id}"
        )
