"""What a campaign needs before it is run: a scheduler and images here, and paths that its nodes see, too."""

import dataclasses
import datetime as dt
import json
import os
import re
import shutil
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from gpubench.errors import MissingToolError, PlanRefusedError, UsageError
from gpubench.files import write_atomically
from gpubench.images.kinds import KINDS
from gpubench.images.kinds.base import images_root
from gpubench.images.obtain import kind_of, make_ready, not_imported
from gpubench.model.image import Image
from gpubench.model.site import Site
from gpubench.plan.shared_paths import Resolved, require_shared
from gpubench.render.shell import command_line
from gpubench.resources.profiles import to_type
from gpubench.runtimes import RUNTIMES
from gpubench.schedulers import BATCH
from gpubench.store.campaign import Campaign

PATHS = "gpubench/paths/1"
PATHS_FILE = "paths.json"
"""File in the campaign with its paths on the machine of the last submission."""

_VARIABLE = re.compile(r"\$(\w+|\{\w+\})|^~")


def place_campaign(campaign: Campaign) -> None:
    """Resolve the paths of a campaign that goes to a queue, see that nodes can see them, and record them.

    Raises:
        UsageError: no container can mount the campaign's directory.
        PlanRefusedError: the campaign or an image is on no shared file system.
    """
    site = campaign.plan.site
    _require_mountable(site.runtime, campaign.directory.resolve())
    if site.scheduler not in BATCH:
        return
    shared = shared_paths(site)
    places = {"the campaign": resolve(str(campaign.directory))}
    for variant in campaign.plan.variants:
        if variant.image and (place := image_place(variant.image)):
            places[f"the image of {variant.label}"] = place
    for what, place in places.items():
        require_shared(what, place, shared)
    write_atomically(campaign.directory / PATHS_FILE, _record(site, places, shared))


def require_sound_images(campaign: Campaign) -> None:
    """See that what nodes open by its path is what was built or imported: this machine sees it, too.

    Raises:
        PlanRefusedError: a variant has no image yet.
        DataError: an image was changed.
    """
    for image in planned_images(campaign):
        if image_place(image):
            make_ready(image)


def _require_mountable(runtime: str, directory: Path) -> None:
    separators = sorted(set(RUNTIMES[runtime].MOUNT_SEPARATORS) & set(str(directory)))
    if separators:
        raise UsageError(
            f"{runtime} can't mount {directory}: it separates the parts of a mount with {' and '.join(separators)}",
            then="name another --outputs",
        )


def shared_paths(site: Site) -> list[Resolved]:
    """The shared file systems of the profile, as they are here."""
    return [resolve(text) for text in site.paths.shared]


def resolve(text: str) -> Resolved:
    """The path with variables, ``~`` and symbolic links resolved; it need not exist."""
    expanded = os.path.expanduser(os.path.expandvars(text))  # noqa: PTH111 - pathlib raises for an unknown user
    return Resolved(text, "" if _VARIABLE.search(expanded) else str(Path(expanded).resolve()))


def image_place(image: Image) -> Resolved | None:
    """A file of the image that nodes open by its path; None if they fetch the image, or load it as a module."""
    path = {"squashfs": image.reference, "venv": image.python, "conda": image.python}.get(image.kind, "")
    # Not the file: a venv's Python is a link to that of the system, which every node has its own of.
    return Resolved(path, str(Path(path).parent.resolve() / Path(path).name)) if path else None


def _record(site: Site, places: dict[str, Resolved], shared: list[Resolved]) -> str:
    plain = {
        "schema": PATHS,
        "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "places": {what: dataclasses.asdict(path) for what, path in places.items()},
        "shared": [dataclasses.asdict(path) for path in shared],
        "images": str(images_root(site.paths.images)),
    }
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def can_submit(site: Site) -> bool:
    """Whether the site has a queue, and this machine the command to submit jobs with."""
    return site.scheduler in BATCH and shutil.which(BATCH[site.scheduler].SUBMIT) is not None


def require_account(site: Site) -> None:
    """Raise UsageError where the site charges every job, and the profile names no account."""
    if site.batch.needs_account and not site.batch.account:
        raise UsageError(
            f"site {site.name} charges every job to an account, and batch.account is empty",
            then="name your project: --set batch.account=NAME",
        )


def prepare(campaign: Campaign) -> None:
    """See that every image and the site's scheduler are there (a site without a queue needs neither yet), and
    ``place_campaign``.

    Raises:
        PlanRefusedError: a variant has no image.
        MissingToolError: this machine has no command to submit with; says what to run where.
        UsageError: the site charges an account, and none is named.
    """
    site = campaign.plan.site
    if site.scheduler in BATCH:
        planned_images(campaign)
        if not can_submit(site):
            submit = command_line(["gpubench", "submit", str(campaign.directory)])
            raise MissingToolError(
                f"there is no {BATCH[site.scheduler].SUBMIT} on this machine; the scripts are in "
                f"{campaign.directory / 'jobs'}",
                then=f"on a login node of {site.name}: {submit}",
            )
        require_account(site)
    place_campaign(campaign)


def planned_images(campaign: Campaign) -> list[Image]:
    """The image of every variant; raises PlanRefusedError where one isn't built."""
    variants = campaign.plan.variants
    require_built(campaign.plan.site, {variant.label: variant.ucx for variant in variants if variant.image is None})
    return [variant.image for variant in variants if variant.image]


def require_built(site: Site, missing: Mapping[str, str]) -> None:
    """Raise PlanRefusedError if images are missing: UCX specs by the labels of their variants."""
    if missing:
        commands = " && ".join(filter(None, unbuilt(site, missing.values())))
        by_plan = "plan again with --images, which builds what is missing"
        raise PlanRefusedError(
            f"no image yet for variant {', '.join(missing)}",
            then=by_plan if KINDS[kind_of(site)].ON_DEMAND else f"make what is missing, and plan again: {commands}",
        )


def require_built_or_queue(site: Site, missing: Mapping[str, str]) -> None:
    """Raise MissingToolError if images are missing, and there is no command to submit with either: a campaign that was
    planned here could run nowhere. ``missing`` as for ``require_built``.
    """
    if missing and site.scheduler in BATCH and not can_submit(site):
        build, load = unbuilt(site, missing.values())
        elsewhere = f"on a machine with Docker: {build}; " if build and load else ""
        raise MissingToolError(
            f"there is no {BATCH[site.scheduler].SUBMIT} on this machine, and no image yet for variant "
            f"{', '.join(missing)}",
            then=f"{elsewhere}on a login node of {site.name}: {load or build}, then the same command; scripts to read: "
            "gpubench plan with --out DIR",
        )


def unbuilt(site: Site, missing: Iterable[str]) -> tuple[str, str]:
    """The commands that build the images which are missing, and that import them; empty where none is needed."""
    specs = list(dict.fromkeys(missing))
    built = not_imported(site, specs)
    to_build = [spec for spec in specs if spec not in built]
    imported = bool(specs) and RUNTIMES[site.runtime].KIND == "squashfs"
    pushed = ["--push", "--set", "image.registry=HOST/NAME"] if imported and not site.image.registry else []
    build, import_ = (
        command_line(["gpubench", "images", command, *to_type(site.name), "--ucx", " ".join(some), *options])
        for command, some, options in (("build", to_build, pushed), ("import", specs, pushed[1:]))
    )
    return build if to_build else "", import_ if imported else ""
