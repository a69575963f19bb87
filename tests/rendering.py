"""The files of jobs, all at once, and files that a person has read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gpubench.model.plan import Plan, PlannedJob
from gpubench.render.job import rendered


def render_jobs(plan: Plan, jobs: list[PlannedJob], templates: Mapping[str, str], node_pyz: bytes) -> dict[str, bytes]:
    """Every file of ``jobs``, by path below the campaign; arguments as those of ``rendered``."""
    return {path: data for files in rendered(plan, jobs, templates, node_pyz) for path, data in files.items()}


def check_golden(path: Path, text: str) -> None:
    """Hold ``text`` against the file that a person has read; GPUBENCH_UPDATE_GOLDEN=1 rewrites that."""
    if os.environ.get("GPUBENCH_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
