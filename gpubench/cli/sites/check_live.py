"""``gpubench sites check --live``: a job that looks whether the site is as its profile says."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from gpubench import __version__, resources
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.images.obtain import obtain_images
from gpubench.cli.say import say
from gpubench.cli.sites import node_jobs
from gpubench.cli.sites.profiles import load_site
from gpubench.errors import PlanRefusedError, UsageError
from gpubench.files import write_atomically
from gpubench.model.image import Image
from gpubench.model.site import Site
from gpubench.plan.site_checks import SiteFinding, check_images, check_nodes, parse_facts
from gpubench.render import pack
from gpubench.render.check import INSIDE, JOB, render_check
from gpubench.schedulers import BATCH


def check_live(name: str, settings: Sequence[str], *, nodes: int, ucx: str | None, outputs: Path | None) -> None:
    """Submit the job, wait for it, and say a line for each thing looked at.

    Raises:
        UsageError: the profile is wrong by itself, or its jobs wait in no queue.
        MissingToolError: the scheduler isn't here.
        SchedulerError: the job was refused.
        PlanRefusedError: the site isn't as the profile says.
        InterruptedByUserError: Ctrl-C; the job is cancelled.
    """
    site = load_site(name, list(settings))
    if site.scheduler not in BATCH:
        raise UsageError(f"site {site.name} has no queue; --live asks a scheduler that has one")
    node_jobs.refuse_wrong(site, "--live", instead="a small campaign tells the same: --suite verify")
    image = _image(site, ucx) if ucx else None
    directory = _write(site, nodes, image, outputs)
    token = secrets.token_hex(8)
    write_atomically(directory / "jobs" / JOB / "from-login", token)
    state = node_jobs.run(site, directory)
    wanted = nodes if state.word == "COMPLETED" else 0
    hosts = [parse_facts(text) for _, text in node_jobs.left_by_nodes(directory, "host", wanted)]
    inside = [parse_facts(text) for _, text in node_jobs.left_by_nodes(directory, "inside", wanted if image else 0)]
    findings = [
        SiteFinding(not state.end, f"{_asked_for(site)}: job {state.job_id} {state.end or 'ran'} on {state.hosts}"),
        *check_nodes(site, nodes, hosts, token),
        *check_images(site, hosts, inside if image else None),
    ]
    for finding in findings:
        say(str(finding))
    wrong = sum(finding.ok is False for finding in findings)
    if wrong:
        raise PlanRefusedError(
            f"site {site.name} isn't as its profile says in {wrong} of these lines",
            then=f"correct the profile, or the site; the job's log is in {directory / 'jobs' / JOB}",
        )
    shutil.rmtree(directory)


def _image(site: Site, ucx: str) -> Image:
    found = obtain_images(site, [ucx], CampaignOptions(), build=False)[ucx]
    if found is None:
        raise PlanRefusedError(f"UCX {ucx} has no image for site {site.name}", then="build it, or leave --ucx out")
    return found[0]


def _write(site: Site, nodes: int, image: Image | None, outputs: Path | None) -> Path:
    files = render_check(
        site,
        nodes,
        image,
        resources.job_templates(),
        inside=(resources.root() / "templates" / "common" / INSIDE).read_text(encoding="utf-8"),
        node_pyz=pack(resources.node_half()),
        gpubench=__version__,
    )
    return node_jobs.write(site, "checks", files, outputs)


def _asked_for(site: Site) -> str:
    asked = {"partition": site.batch.queue, "account": site.batch.account, "qos": site.batch.qos}
    given = [f"{name} {value}" for name, value in asked.items() if value]
    return ", ".join(given) or "the default partition and account"
