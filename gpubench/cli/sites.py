"""``gpubench sites``: the profiles that there are, whether one is right, and what a site's nodes need."""

from pathlib import Path
from typing import Annotated

import typer

from gpubench.campaign import options as campaign_options
from gpubench.cli import options
from gpubench.cli.say import say, say_lines
from gpubench.errors import UsageError

MaybeName = Annotated[
    str | None,
    typer.Argument(help="Profile in sites/, or a .toml file; default: every shipped one.", show_default=False),
]


def register(app: typer.Typer) -> None:
    group = options.command_group("Site profiles: list, check, new; prepare and clean nodes.")
    group.command("list")(list_)
    for command in (new, check, clean, prereqs):
        group.command()(command)
    app.add_typer(group, name="sites")


def list_(
    name: Annotated[
        str | None, typer.Argument(help="Print this profile; one in sites/, or a .toml file.", show_default=False)
    ] = None,
    settings: campaign_options.Set = None,
) -> None:
    """Every shipped profile. With NAME: that profile as TOML, with inherited values and the values from --set."""
    from gpubench.report.sections import table_lines
    from gpubench.sites.profile_checks import profile_lines, site_table

    if name is None and settings:
        raise UsageError("--set changes one profile", then="name it")
    say_lines(table_lines(site_table()) if name is None else profile_lines(name, settings or []))


def new(
    name: Annotated[str, typer.Argument(help="Name of the site and of its file.", show_default=False)],
    scheduler: Annotated[str, typer.Option(help="{gpubench.schedulers.SCHEDULERS}.")],
    runtime: Annotated[str, typer.Option(help="How a run enters its image.")],
    launcher: Annotated[
        str | None, typer.Option(help="How a job starts on its nodes; default: the usual launcher of the scheduler.")
    ] = None,
    partition: Annotated[
        str, typer.Option(help="Partition or queue that jobs go to; default: to be filled in.", show_default=False)
    ] = "",
    out: Annotated[Path, typer.Option(help="Folder that NAME.toml is written into.")] = Path(),
) -> None:
    """Write NAME.toml, a commented profile to fill in.

    Commands of this machine (sinfo, nvidia-smi, ip, ucx_info) are asked; what they say beyond doubt is filled in.
    """
    from gpubench.sites.new_site import new_site

    new_site(name, scheduler, launcher, runtime, out, queue=partition)


def check(
    name: MaybeName = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Submit a short job that checks whether the site is as the profile says."),
    ] = False,
    nodes: Annotated[int | None, typer.Option(min=1, help="With --live: on this many nodes; default 2.")] = None,
    ucx: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="With --live: also check inside the image of this UCX version."),
    ] = None,
    settings: campaign_options.Set = None,
    outputs: campaign_options.Outputs = None,
) -> None:
    """Check a profile: a line for each check. Exit 2 if the file is wrong, 6 if the site isn't as the file says."""
    if not live:
        if nodes or ucx or outputs:
            raise UsageError("--nodes, --ucx and --outputs go with --live only")
        _check_profiles(name, settings or [])
        return
    if name is None:
        raise UsageError("--live needs the name of a profile")
    from gpubench.sites.node_jobs import check_live

    check_live(name, settings or [], nodes=nodes or 2, ucx=ucx, outputs=outputs)


def _check_profiles(name: str | None, settings: list[str]) -> None:
    from gpubench.resources.profiles import site_names
    from gpubench.sites.profile_checks import check_profile

    results = [
        (site, result) for site in ([name] if name else site_names()) for result in check_profile(site, settings)
    ]
    for site, result in results:
        say(str(result) if name else f"{site}: {result}")
    if wrong := sum(result.ok is False for _, result in results):
        raise UsageError(f"{wrong} of these lines {'is' if wrong == 1 else 'are'} wrong", then="correct the profile")


def clean(
    name: options.NamedSite,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Check this many nodes, default 1; the scheduler chooses which.")
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--all", help="Check every node of the profile's partition that takes jobs (Slurm).")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove what is found.")] = False,
    settings: campaign_options.Set = None,
    outputs: campaign_options.Outputs = None,
) -> None:
    """List what dead jobs left on nodes, or remove it. Exit 6 if anything can't be removed."""
    from gpubench.sites.node_jobs import clean_site

    if nodes and everywhere:
        raise UsageError("--nodes and --all", then="give one of them")
    clean_site(name, settings or [], nodes=None if everywhere else nodes or 1, remove=remove, outputs=outputs)


def prereqs(
    name: options.NamedSite,
    out: Annotated[Path | None, typer.Option(help="Where to write; default: outputs/prereqs/SITE.")] = None,
    settings: campaign_options.Set = None,
) -> None:
    """Write files that prepare the nodes of a site. An Ansible playbook, and the conda environment of its stack.

    The playbook installs git, rsync and compilers as the distribution has them, conda and, where there are GPUs, the
    CUDA toolkit in fixed versions, and makes the shared directory; a second run changes nothing. This command needs no
    network.
    """
    from gpubench.resources.profiles import load_site
    from gpubench.sites.prereqs import write_prereqs

    write_prereqs(load_site(name, settings), out)
