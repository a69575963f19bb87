"""``gpubench images verify``: a cluster of one node inside the image, and what its processes say of themselves."""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench import __version__
from gpubench.cli.options import Asked
from gpubench.cli.say import say
from gpubench.cli.steps.images import obtain_images
from gpubench.cli.steps.planning import write_scripts
from gpubench.cli.steps.profiles import load_site, load_suite
from gpubench.cli.steps.running import run_jobs
from gpubench.errors import DataError, PlanRefusedError, UsageError
from gpubench.images.manifest import manifest_id
from gpubench.images.order import Found
from gpubench.model.image import Image, Variant
from gpubench.model.site import Site
from gpubench.plan import Request, make_plan
from gpubench.plan.triples import VALID
from gpubench.runtimes import RUNTIMES
from gpubench.spec.plain import content_id
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_provenance

WITHOUT_UCX = "none"


def verify_images(site: Site, specs: Sequence[str], asked: Asked) -> None:
    """One after the other; all are tried, the first that failed is raised.

    Raises:
        DataError: an image whose processes disagree with each other or with its manifest, or don't exchange a message.
        UsageError: an image that isn't built.
    """
    found = obtain_images(site, specs, asked, build=False)
    failed: list[DataError] = []
    for spec, entry in found.items():
        if entry is None:
            raise UsageError(f"there is no image {spec} for site {site.name}", then=f"gpubench images build {spec}")
        try:
            _verify(site, spec, entry)
        except DataError as error:
            say(f"{spec}: {error}")
            failed.append(error)
    if failed:
        raise failed[0]


def _verify(site: Site, spec: str, entry: Found) -> None:
    image, manifest = entry
    with tempfile.TemporaryDirectory(prefix="gpubench-verify-") as folder:
        campaign = _campaign(_here(site, image), image, manifest, Path(folder) / f"verify-{spec.replace('/', '_')}")
        run_jobs(campaign, quiet=True)
        (outcome,) = account(campaign).outcomes
        if outcome.status != "ok" or outcome.directory is None:
            raise DataError(f"image {spec}: the run in it is {outcome.status}: {outcome.reason}")
        processes = read_provenance(outcome.directory)["processes"]
    _check_packages(spec, manifest, processes)
    say(f"{spec}: {image.kind} {image.id}, {len(processes)} processes agree")
    for process in processes:
        say(f"  {process['role']:<10} UCX {process['ucx']['loaded']:<8} {process['ucx']['path'] or '-'}  "
            f"Python {process['python']}  {_binding(image, process)}  packages {process['packages']}"
            + (f"  build {process['build_id']}" if image.build_id else ""))  # fmt: skip


def _binding(image: Image, process: Mapping[str, Any]) -> str:
    versions = process["versions"]
    name = {"ucx-py": "ucp"}.get(image.binding, image.binding)
    return f"{image.binding} {versions.get(name, 'not imported')}" if image.ucx_version != WITHOUT_UCX else "no binding"


def _check_packages(spec: str, manifest: Mapping[str, Any], processes: Sequence[Mapping[str, Any]]) -> None:
    """The run has checked that the processes agree; here, that they are what the image was built as."""
    planned = content_id(manifest["stack"]["packages"])
    if processes[0]["packages"] != planned:
        raise DataError(
            f"image {spec}: its processes find packages {processes[0]['packages']}, its manifest lists {planned}",
            then="somebody changed the image after its build; build it anew",
        )


def _here(site: Site, image: Image) -> Site:
    """The local profile, with a runtime that starts such an image here and the site's own name and settings."""
    local = load_site("local")
    fitting = [
        runtime
        for scheduler, launcher, runtime in sorted(VALID)
        if (scheduler, launcher) == (local.scheduler, local.launcher) and image.kind == RUNTIMES[runtime].KIND
    ]
    if not fitting:
        raise PlanRefusedError(f"images of kind {image.kind} can't be started on this machine")
    return local.model_copy(update={"name": site.name, "runtime": fitting[0], "container": site.container})


def _campaign(site: Site, image: Image, manifest: Mapping[str, Any], directory: Path) -> Campaign:
    suite, source = load_suite("verify")
    now = dt.datetime.now(dt.UTC)
    request = Request(
        campaign=directory.name,
        created_at=now.isoformat(),
        gpubench=__version__,
        site=site,
        suite=suite.name,
        workloads=suite.resolve(source, reps=None, timeout_s=site.limits.workload),
        variants=[Variant(label=image.ucx_spec, ucx=image.ucx_spec)],
        images={image.ucx_spec: image},
        nodes=[1],
        blocks=1,
        seed=1,
        protocol="tcp" if image.ucx_version == WITHOUT_UCX else site.protocol,
        device=site.device,
        machine_cores=os.cpu_count() or 1,
        machine_memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )
    directory.mkdir()
    campaign = Campaign.begin(directory, make_plan(request))
    campaign.write_manifest(manifest_id(manifest), dict(manifest))
    write_scripts(campaign)
    return campaign
