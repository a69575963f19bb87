"""What writers and runs that were killed left in a campaign."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gpubench.files import discard_dead

_TEMPORARY = re.compile(r"\..+\.(tmp|[a-z0-9_]{8})|\.rendezvous-.+")


def is_temporary(name: str) -> bool:
    """Whether it is what the tool or the node half writes in passing: ``.run.json.x1y2z3_8``."""
    return _TEMPORARY.fullmatch(name) is not None


def clear_remains(directory: Path) -> None:
    """Remove temporary files and meeting points below ``directory``, of which no job may live; those in use stay."""
    for folder, _, names in os.walk(directory):
        for name in filter(is_temporary, names):
            discard_dead(Path(folder) / name)
