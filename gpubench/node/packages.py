"""The packages of this process's Python: those that it finds, and those that its image was built with."""

import json
import re
from pathlib import Path
from typing import Any, Dict

from gpubench.node.spec.plain import content_id

_HEADER = re.compile(r"^(Name|Version):[ \t]*(.*)$", re.MULTILINE | re.IGNORECASE)


def packages_in_manifest(path: str) -> str:
    """``packages_id`` of what the image's manifest at ``path`` lists; empty where there is none, or it lists none."""
    try:
        listed = json.loads(Path(path).read_text(encoding="utf-8"))["stack"]["packages"] if path else None
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return content_id(listed) if listed else ""


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
