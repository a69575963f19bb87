"""Which scheduler, launcher and runtime go together; everything else is refused before anything is written."""

from gpubench.errors import PlanRefusedError
from gpubench.model.base import nearest
from gpubench.model.site import Site

_RUNTIMES = {
    ("kubernetes", "indexed-job"): ("pod",),
    ("local", "fork"): ("apptainer", "conda", "docker", "enroot", "modules", "venv"),
    ("lsf", "jsrun"): ("apptainer", "conda", "modules", "venv"),
    ("pbs", "ssh"): ("apptainer", "conda", "modules", "venv"),
    ("slurm", "srun"): ("apptainer", "conda", "enroot", "modules", "pyxis", "venv"),
    ("slurm", "ssh"): ("apptainer", "conda", "modules", "venv"),
}
VALID = {(*pair, runtime) for pair, runtimes in _RUNTIMES.items() for runtime in runtimes}
"""Scheduler, launcher and runtime."""

BLOCKS_PER_JOB = {"indexed-job": 1}
"""By launcher; of any other a job holds as many blocks as surely fit into its time limit."""

BRINGS_FILES = {"indexed-job"}
"""Launchers whose jobs bring all their files along: nodes need not see any directory of the machine that submits."""


def check_combination(site: Site) -> None:
    """Raise PlanRefusedError unless the site's triple is valid."""
    triple = (site.scheduler, site.launcher, site.runtime)
    for at, (kind, word) in enumerate(zip(("scheduler", "launcher", "runtime"), triple, strict=True)):
        if word not in (choices := sorted({combination[at] for combination in VALID})):
            raise PlanRefusedError(f"site {site.name}: there is no {kind} '{word}'{nearest(word, choices)}")
    if triple not in VALID:
        own = sorted(combination for combination in VALID if combination[0] == site.scheduler)
        raise PlanRefusedError(
            f"site {site.name}: scheduler, launcher and runtime {' + '.join(triple)} don't go together",
            then=f"with {site.scheduler}: {'; '.join(' + '.join(combination[1:]) for combination in own)}",
        )
