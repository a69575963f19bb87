"""Launcher ``indexed-job``: one pod per node of a Kubernetes Indexed Job, which numbers them.

https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
"""

from __future__ import annotations

from gpubench.model.site import Site

TEMPLATE = ""
RANK = "JOB_COMPLETION_INDEX"


def shape(site: Site) -> list[str]:  # noqa: ARG001 - no step is started
    """Nothing: the template of the Job says it all."""
    return []
