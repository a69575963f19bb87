"""What a launcher says; by default it adds no words to a step."""

import dataclasses

from gpubench.model.site import Site

GRACE_S = 30
"""Seconds for the other supervisors beyond twice the site's limit for a stop: they leave by themselves."""


@dataclasses.dataclass(frozen=True)
class Launcher:
    """An adapter to a command that starts one process on every node.

    Args:
        template: shell below ``templates/`` that defines ``launch COMMAND...`` and ``aside COMMAND...``, and handles
            signals; empty where the job is no script.
        rank: variable that tells a supervisor which node it is on; a container has to get it.
    """

    template: str
    rank: str

    def shape(self, site: Site) -> list[str]:  # noqa: ARG002 - no step is started
        """Words that the template gets as ``step_shape``: what every step says about itself, or how long it takes."""
        return []
