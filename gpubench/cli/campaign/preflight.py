"""What a submit needs on this machine, asked before anything is submitted."""

from __future__ import annotations

import shutil

from gpubench.cli.campaign.running import planned_images, unbuilt
from gpubench.errors import MissingToolError
from gpubench.schedulers import BATCH
from gpubench.store.campaign import Campaign


def require_scheduler(campaign: Campaign) -> None:
    """See that the site's scheduler and every image are there; a site without a queue needs neither yet.

    Raises:
        MissingToolError: this machine has no command to submit with; says what to run where.
        PlanRefusedError: a variant has no image.
    """
    site = campaign.plan.site
    scheduler = BATCH.get(site.scheduler)
    if scheduler is None:
        return
    if shutil.which(scheduler.SUBMIT) is None:
        build, load = unbuilt(campaign)
        elsewhere = f"where Docker is: {build}; " if build and load else ""
        raise MissingToolError(
            f"there is no {scheduler.SUBMIT} on this machine; the scripts are in {campaign.directory / 'jobs'}",
            then=f"{elsewhere}on a login node of {site.name}: "
            + (f"{load or build}, then the same command" if build or load else f"gpubench submit {campaign.directory}"),
        )
    planned_images(campaign)
