"""The files of jobs, all at once."""

from __future__ import annotations

from collections.abc import Mapping

from gpubench.model.plan import Plan, PlannedJob
from gpubench.render.job import rendered


def render_jobs(plan: Plan, jobs: list[PlannedJob], templates: Mapping[str, str], node_pyz: bytes) -> dict[str, bytes]:
    """Every file of ``jobs``, by path below the campaign; arguments as those of ``rendered``."""
    return {path: data for files in rendered(plan, jobs, templates, node_pyz) for path, data in files.items()}
