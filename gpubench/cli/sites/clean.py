"""``gpubench sites clean``: a job that looks on a site's nodes for what dead jobs left there, and removes it."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpubench import __version__, resources
from gpubench.cli.say import say
from gpubench.cli.sites import node_jobs
from gpubench.cli.sites.profiles import load_site
from gpubench.errors import PlanRefusedError, SchedulerError
from gpubench.model.quantities import format_bytes
from gpubench.render.check import JOB, LEFT, render_clean
from gpubench.schedulers import BATCH


@dataclasses.dataclass(frozen=True)
class LeftOnNode:
    """One thing on a node.

    Args:
        became: ``there``, ``removed``, or ``kept`` where it can't be removed.
        kib: its size in KiB; None: unknown.
        what: its kind.
        where: its path, or the name that its runtime knows.
    """

    node: str
    became: str
    kib: int | None
    what: str
    where: str

    def __str__(self) -> str:
        size = "" if self.kib is None else f", {format_bytes(self.kib * 1024)}"
        end = {"there": "", "removed": ": removed"}.get(self.became, ": can't be removed")
        return f"{self.node}: {self.what} {self.where}{size}{end}"


def clean_site(name: str, settings: Sequence[str], *, nodes: int, remove: bool, outputs: Path | None) -> None:
    """Run the job, and say a line for each thing found.

    Raises:
        UsageError: the profile is wrong by itself, or its jobs are no scripts.
        MissingToolError: the scheduler isn't here.
        SchedulerError: the job was refused or failed, or not every node answered.
        PlanRefusedError: something can't be removed.
        InterruptedByUserError: Ctrl-C; the job is cancelled.
    """
    site = load_site(name, list(settings))
    node_jobs.refuse_wrong(site, "sites clean", instead="what pods leave ends with them")
    files = render_clean(site, nodes, resources.job_templates(), remove=remove, gpubench=__version__)
    directory = node_jobs.write(site, "cleanings", files, outputs)
    log = directory / "jobs" / JOB
    if site.scheduler in BATCH:
        state = node_jobs.run(site, directory)
        if state.end:
            raise SchedulerError(f"job {state.job_id} {state.end} on {state.hosts}", then=f"its log is in {log}")
    else:
        node_jobs.run_here(directory)
    seen = dict(node_jobs.left_by_nodes(directory, LEFT, nodes))
    found = [one for node, text in seen.items() for one in _parse(node, text)]
    for one in found:
        say(str(one))
    if len(seen) != nodes:
        names = f": {', '.join(seen)}" if seen else ""
        raise SchedulerError(f"{len(seen)} of {nodes} nodes answered{names}", then=f"the job's log is in {log}")
    kept = sum(one.became == "kept" for one in found)
    if kept:
        raise PlanRefusedError(f"{kept} of these can't be removed", then=f"the job's log, which says why, is in {log}")
    shutil.rmtree(directory)
    there = len(found) if not remove else 0
    how = "; remove it with --remove" if there else ""
    say(f"{there or 'nothing'} left by dead jobs on {', '.join(seen)}{how}")


def _parse(node: str, text: str) -> Iterator[LeftOnNode]:
    for line in text.splitlines():
        became, kib, what, where = line.split("\t", 3)
        yield LeftOnNode(node, became, int(kib) if kib else None, what, where)
