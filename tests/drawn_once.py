"""Charts in a test process: one that was drawn before has the same picture, and drawing takes most of a page's time."""

from __future__ import annotations

import hashlib
import json

from gpubench.report import svg
from gpubench.report.sections import Spec

PICTURES: dict[str, str] = {}
draw = svg._draw


def draw_once(name: str, spec: Spec) -> str:
    """What the renderer makes of the spec."""
    key = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()
    if key not in PICTURES:
        PICTURES[key] = draw(name, spec)
    return PICTURES[key]


svg._draw = draw_once
