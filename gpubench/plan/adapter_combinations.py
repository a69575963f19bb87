"""Which scheduler, launcher and runtime go together; everything else is refused before anything is written."""

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.launchers import LAUNCHERS
from gpubench.model.base import nearest
from gpubench.model.site import Site
from gpubench.runtimes import RUNTIMES

VALID = {
    (scheduler, launcher, runtime)
    for launcher, adapter in LAUNCHERS.items()
    for scheduler in adapter.schedulers
    for runtime in RUNTIMES
    if launcher in RUNTIMES[runtime].LAUNCHERS
}
"""Scheduler, launcher and runtime: a launcher names its schedulers, a runtime its launchers."""


def check_combination(site: Site) -> None:
    """Raise PlanRefusedError unless the site's triple is valid, UsageError if one of it doesn't exist."""
    triple = (site.scheduler, site.launcher, site.runtime)
    for at, (kind, word) in enumerate(zip(("scheduler", "launcher", "runtime"), triple, strict=True)):
        if word not in (choices := sorted({combination[at] for combination in VALID})):
            raise UsageError(f"site {site.name}: there is no {kind} '{word}'{nearest(word, choices)}")
    if triple not in VALID:
        own = sorted(combination for combination in VALID if combination[0] == site.scheduler)
        raise PlanRefusedError(
            f"site {site.name}: scheduler, launcher and runtime {' + '.join(triple)} don't go together",
            then=f"with {site.scheduler}: {'; '.join(' + '.join(combination[1:]) for combination in own)}",
        )
