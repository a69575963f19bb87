"""From the plan to files: scripts, run specs and the node half. Pure: values in, path → bytes out."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpubench.render.job import job_file, render_jobs, rendered
    from gpubench.render.planned import pack

__all__ = ["job_file", "pack", "render_jobs", "rendered"]
_HOMES = {"job_file": "job", "pack": "planned", "render_jobs": "job", "rendered": "job"}


def __getattr__(name: str) -> Any:
    """What only some commands need is imported when it is asked for (PEP 562): a verdict renders no template."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
