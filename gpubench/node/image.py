"""The image of this process: its build and the packages that it was built with, by its manifest; those that it has."""

import json
import re
from pathlib import Path
from typing import Any, Dict

from gpubench.node.spec import RunSpec
from gpubench.node.spec.plain import content_id

_HEADER = re.compile(r"^(Name|Version):[ \t]*(.*)$", re.MULTILINE | re.IGNORECASE)


class WrongImageError(Exception):
    """The container was started from another build than the planned one."""


def check_build(spec: RunSpec) -> None:
    """Raise WrongImageError unless this is the planned build; nothing is checked where none is planned."""
    build = build_id(spec.build_manifest)
    if spec.build_id and build != spec.build_id:
        what = f"build {build}" if build else "no build id"
        raise WrongImageError(
            f"the image of variant {spec.variant} has {what} in {spec.build_manifest}, planned {spec.build_id}"
        )


def build_id(manifest: str) -> str:
    """The build id in the image's manifest at this path; empty where there is none or it can't be read."""
    return str(_listed(manifest, "build_id") or "")


def packages_in_manifest(manifest: str) -> str:
    """``packages_id`` of what the image's manifest lists; empty where there is none, or it lists none."""
    packages = _listed(manifest, "stack", "packages")
    return content_id(packages) if packages else ""


def _listed(manifest: str, *keys: str) -> Any:
    try:
        value = json.loads(Path(manifest).read_text(encoding="utf-8"))
        for key in keys:
            value = value[key]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return value


def packages() -> Dict[str, str]:
    """Version by name of every package that this Python finds, names as ``images`` writes them in manifests."""
    from importlib import metadata  # a supervisor checks its build only, and does without

    versions: Dict[str, str] = {}
    for item in metadata.distributions():
        headers = _headers(item)
        if "name" in headers:  # a broken .dist-info has none
            versions.setdefault(headers["name"].lower().replace("_", "-"), headers.get("version", ""))
    return dict(sorted(versions.items()))


def _headers(distribution: Any) -> Dict[str, str]:
    """Name and version as ``distribution.metadata`` has them, in a tenth of its time: that parses whole READMEs."""
    files = ("METADATA", "PKG-INFO", "")  # the last is an .egg-info that is a file
    text = next(filter(None, map(distribution.read_text, files)), "")
    headers = reversed(_HEADER.findall(text.partition("\n\n")[0]))  # of two the first counts
    return {name.lower(): value for name, value in headers}


def packages_id() -> str:
    """One hash of ``packages``: processes that agree in it have the same packages."""
    return content_id(packages())
