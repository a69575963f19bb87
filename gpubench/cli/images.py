"""``gpubench images``: one image per UCX version: build, push, import and list images."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpubench.campaign import options as campaign_options
from gpubench.campaign.options import CampaignOptions
from gpubench.cli.options import command_group
from gpubench.cli.say import say, say_lines, say_text
from gpubench.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from gpubench.images.kinds.base import Entry
    from gpubench.model.site import Site

Specs = Annotated[
    list[str] | None,
    typer.Argument(help="UCX versions: 1.16.0, v1.14.x, master, REF@COMMIT, none.", show_default=False),
]
MoreSpecs = Annotated[str | None, typer.Option("--ucx", help="UCX versions, separated by commas or blanks.")]
COLUMNS = {
    "spec": "version",
    "ucx": "UCX",
    "kind": "kind",
    "site": "site",
    "date": "date",
    "stack": "stack",
    "identity": "digest or content",
    "where": "where",
}
"""Of the table, by what they show."""
WIDTH = 200
"""Columns of the table, also of a narrower terminal, which wraps the lines: digests stay whole."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def register(app: typer.Typer) -> None:
    group = command_group("One image per UCX version. Build, push, import and list images.")
    for command in (build, push, import_):
        group.command(command.__name__.rstrip("_"))(command)
    group.command("list")(list_)
    app.add_typer(group, name="images")


def build(
    specs: Specs = None,
    ucx: MoreSpecs = None,
    site: campaign_options.Site = "local",
    runtime: campaign_options.Runtime = None,
    base: campaign_options.Base = None,
    date: campaign_options.Date = None,
    stack: Annotated[
        str,
        typer.Option(
            help="Row of docker/compatibility.toml; default: the first that fits. Not for kind venv: VERSION,stack=ROW."
        ),
    ] = "",
    push: Annotated[
        bool | None,
        typer.Option("--push/--no-push", help="Push to the site's registry; default: push if the site names one."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write Dockerfiles; default: outputs/images.")] = None,
    settings: campaign_options.Set = None,
) -> None:
    """Build an image per version, push and lock it. Writes a Dockerfile, create.sh or load.sh for each.

    Without Docker or conda the files are still written, and the exit code is 5. A version that fails doesn't stop
    the others; the exit code is then that of the failure.
    """
    from gpubench.images import building

    options = CampaignOptions(site=site, runtime=runtime, base=base, date=date, settings=settings)
    chosen = _container_site(options)
    building.build(
        building.BuildRequest(
            site=chosen,
            specs=_required(_specs_of(specs, ucx), chosen),
            date=_date(options),
            stack=stack,
            push=push,
            out=out,
        )
    )


def push(
    specs: Specs = None,
    ucx: MoreSpecs = None,
    site: campaign_options.Site = "local",
    date: campaign_options.Date = None,
    settings: campaign_options.Set = None,
) -> None:
    """Push locked images to the site's registry. Without names: all of them. Locks the registry's digests."""
    from gpubench.images import building

    options = CampaignOptions(site=site, date=date, settings=settings)
    building.push(_site(options), _specs_of(specs, ucx), _date(options))


def import_(
    specs: Specs = None,
    ucx: MoreSpecs = None,
    site: campaign_options.Site = "local",
    date: campaign_options.Date = None,
    out: Annotated[Path | None, typer.Option(help="Only write import.sh there; don't run it.")] = None,
    settings: campaign_options.Set = None,
) -> None:
    """Import locked images into squashfs files. By enroot or Apptainer, here or as a job, as the profile says.

    A file is named after the digest of its image. Imports at the same time and killed imports leave no torn file.
    """
    from gpubench.images.importing import import_images

    options = CampaignOptions(site=site, date=date, settings=settings)
    import_images(_site(options), _specs_of(specs, ucx), _date(options), out)


def list_(
    spec: Annotated[
        str | None, typer.Argument(help="Everything about the image of this version.", show_default=False)
    ] = None,
    site: Annotated[str | None, typer.Option(help="Only images of this site.")] = None,
    date: campaign_options.Date = None,
    settings: campaign_options.Set = None,
    registry: Annotated[
        bool, typer.Option("--registry", help="Ask the site's registry, and lock what it holds; needs no Docker.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Every image that there is. Locked ones by digest, venvs by content, and the squashfs files imported here.

    With SPEC: its names and digests, its UCX, and its packages; of site local if --site names no other. With
    --registry: the images of the site that its registry holds; images.lock.toml gets their rows.
    """
    from gpubench.images.listing import image_lines, images_in_registry, images_of

    options = CampaignOptions(site=site or "local", date=date, settings=settings)
    if spec is not None:
        if as_json or registry:
            raise UsageError("--json and --registry list images", then="leave SPEC or the option out")
        (name,) = _specs_of([spec], None)
        say_lines(image_lines(_site(options), name, _date(options)))
    elif date or (settings and not registry):
        raise UsageError("--date and --set are for one image", then="name its version")
    else:
        _show_images(images_in_registry(_site(options)) if registry else images_of(site), site, as_json=as_json)


def _show_images(entries: Sequence[Entry], site: str | None, *, as_json: bool) -> None:
    if as_json:
        say_text(json.dumps({"images": [dataclasses.asdict(entry) for entry in entries]}, indent=1))
    elif not entries:
        of_site = f" --site {site}" if site else ""
        say(f"no image yet; gpubench images build{of_site} --ucx VERSION builds one, and bench those of site local")
    else:
        from gpubench.cli.terminal import Terminal

        Terminal(width=WIDTH).print(_table(entries))


def _table(entries: Sequence[Entry]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from gpubench.model.quantities import format_bytes

    table = Table(box=None, pad_edge=False)
    for name in COLUMNS.values():
        table.add_column(name, overflow="fold")
    table.add_column("size", overflow="fold", justify="right")
    for entry in entries:
        size = format_bytes(entry.size) if entry.size else ""
        table.add_row(*(Text(getattr(entry, name)) for name in COLUMNS), Text(size))
    return table


def _specs_of(specs: list[str] | None, ucx: str | None) -> list[str]:
    """Versions as arguments and as one option, each once."""
    from gpubench.images.ucx_specs import named

    return list(dict.fromkeys(map(named, [*(specs or []), *(ucx or "").replace(",", " ").split()])))


def _required(specs: list[str], site: Site) -> list[str]:
    """The versions; where none is named, those of the site's own variants."""
    from gpubench.images.ucx_specs import named
    from gpubench.model.variant import parse_variant

    if not specs and not site.defaults.variants:
        raise UsageError(f"no version is named, and site {site.name} has no default variants", then="--ucx 1.16.0")
    return specs or list(dict.fromkeys(named(parse_variant(text).ucx) for text in site.defaults.variants))


def _site(options: CampaignOptions) -> Site:
    from gpubench.campaign.option_values import chosen_settings
    from gpubench.resources.profiles import load_site

    return load_site(options.site, chosen_settings(options))


def _date(options: CampaignOptions) -> str:
    from gpubench.campaign.option_values import parsed

    return str(parsed("date", options.date) or "")


def _container_site(options: CampaignOptions) -> Site:
    """The site; where campaigns build their images themselves, containers are what is left to ask for."""
    from gpubench.images.kinds import KINDS
    from gpubench.images.obtain import kind_of

    site = _site(options)
    if options.runtime is None and KINDS[kind_of(site)].ON_DEMAND:
        return site.model_copy(update={"runtime": "docker"})
    return site
