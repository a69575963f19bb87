"""How one supervisor per node is started: one module each, named in the one dict."""

from __future__ import annotations

from typing import Protocol

from gpubench.launchers import fork, indexed_job, jsrun, srun, ssh
from gpubench.model.site import Site


class Launcher(Protocol):
    """An adapter to a command that starts one process on every node."""

    @property
    def TEMPLATE(self) -> str:  # noqa: N802 - a module's constant
        """Shell below ``templates/`` that defines ``launch COMMAND...``, ``aside COMMAND...`` and heeds signals.

        Empty where the job is no script.
        """

    @property
    def RANK(self) -> str:  # noqa: N802
        """Variable that tells a supervisor which node it is on; a container has to get it."""

    def shape(self, site: Site) -> list[str]:
        """Words that the template gets as ``step_shape``: what every step says about itself, or how long it takes."""


LAUNCHERS: dict[str, Launcher] = {
    "fork": fork,
    "indexed-job": indexed_job,
    "jsrun": jsrun,
    "srun": srun,
    "ssh": ssh,
}
