"""From the plan to files: scripts, run specs and the node half. Pure: values in, path → bytes out."""

from gpubench.render.job import job_file, render_jobs, rendered
from gpubench.render.planned import pack

__all__ = ["job_file", "pack", "render_jobs", "rendered"]
