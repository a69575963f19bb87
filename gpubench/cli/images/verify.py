"""``gpubench images verify``: a cluster of one node inside the image, and the reports of its processes."""

import datetime as dt
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench import __version__
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.campaign.planning import write_scripts
from gpubench.cli.campaign.running import run_jobs
from gpubench.cli.images.lock import read_lock
from gpubench.cli.images.obtain import kind_of, obtain_images
from gpubench.cli.say import say
from gpubench.cli.sites.profiles import load_site, load_suite, to_type
from gpubench.errors import DataError, MissingToolError, PlanRefusedError, UsageError
from gpubench.files import temporary_directory
from gpubench.images.kinds import KINDS
from gpubench.images.kinds.base import Found
from gpubench.images.manifests import manifest_id
from gpubench.model.image import Image, Variant
from gpubench.model.site import Site
from gpubench.plan.adapter_combinations import VALID
from gpubench.plan.make import Request, make_plan
from gpubench.render.environment import words
from gpubench.runtimes import RUNTIMES
from gpubench.spec.plain import content_id
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_provenance

WITHOUT_UCX = "none"
GPU_DEVICE = Path("/dev/nvidiactl")


def verify_images(site: Site, specs: Sequence[str], asked: CampaignOptions) -> None:
    """One after the other; all are tried, the first that failed is raised.

    Raises:
        DataError: an image whose processes disagree with each other or with its manifest, or don't exchange a message.
        UsageError: an image that isn't built.
    """
    found = {spec: _find(site, spec, asked) for spec in specs}
    failed: list[DataError] = []
    for spec, entry in found.items():
        try:
            _verify(site, spec, entry)
        except DataError as error:
            say(f"{spec}: {error}")
            failed.append(error)
    if failed:
        raise failed[0]


def _find(site: Site, spec: str, asked: CampaignOptions) -> Found:
    """The image that ``show`` shows: a locked container before a venv that is made when it is needed.

    Where a container isn't imported yet, the container itself: it is the same image, and Docker may be here.
    """
    locked = read_lock().find(kind="docker", spec=spec, site=site.name, date=asked.chosen_date()) is not None
    container = site.model_copy(update={"runtime": "docker"})
    kind = kind_of(site)
    if locked and asked.runtime is None and KINDS[kind].ON_DEMAND:
        site = container
    found = obtain_images(site, [spec], asked, build=False)[spec]
    if found is None and locked and asked.runtime is None and kind == "squashfs":
        say(f"{spec}: not imported on this machine, so the container that was built for it is verified")
        found = obtain_images(container, [spec], asked, build=False)[spec]
    if found is None:
        command = "import" if locked else "build"
        raise UsageError(
            f"there is no image {spec} of kind {kind} for site {site.name} on this machine",
            then=words(["gpubench", "images", command, "--site", to_type(site.name), "--ucx", spec]),
        )
    return found


def _verify(site: Site, spec: str, entry: Found) -> None:
    image, manifest = entry
    with temporary_directory("verify") as folder:
        campaign = _campaign(_here(site, image), image, manifest, folder / f"verify-{spec.replace('/', '_')}")
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
            then="the image was changed after its build; build it again",
        )


def _here(site: Site, image: Image) -> Site:
    """The local profile, with a runtime that starts such an image here and the site's own name.

    The options and mounts of the site's containers are its own runtime's, and may mean nothing to another.
    """
    local = load_site("local")
    runtime = runtime_here(site.runtime, image.kind)
    container = site.container if runtime == site.runtime else local.container
    here = {"name": site.name, "runtime": runtime, "container": container}
    if not GPU_DEVICE.exists():  # a login node: the hooks of its container runtime shall not look for what isn't there
        here["device"] = "cpu"
    return local.model_copy(update=here)


def runtime_here(own: str, kind: str) -> str:
    """The runtime that starts images of a kind on this machine: the site's ``own``, or one whose program is here.

    Raises:
        PlanRefusedError: none can without a scheduler.
        MissingToolError: none is installed.
    """
    local = load_site("local")
    fitting = [
        runtime
        for scheduler, launcher, runtime in sorted(VALID)
        if (scheduler, launcher) == (local.scheduler, local.launcher) and kind == RUNTIMES[runtime].KIND
    ]
    if own in fitting:
        return own
    if not fitting:
        raise PlanRefusedError(f"images of kind {kind} can't be started on this machine")
    programs = {runtime: RUNTIMES[runtime].PROGRAM for runtime in fitting}
    for runtime, program in programs.items():
        if not program or shutil.which(program):
            return runtime
    raise MissingToolError(
        f"none of the programs that start images of kind {kind} is here: {', '.join(programs.values())}",
        then="install one, or verify on a machine that has one",
    )


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
