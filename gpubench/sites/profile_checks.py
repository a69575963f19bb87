"""Site profiles: list them, show one with the source of each value, check one without its site."""

import operator
from collections.abc import Iterator, Sequence
from pathlib import Path

import tomli_w

from gpubench.errors import GpubenchError, UsageError
from gpubench.images.recipes import stacks_for
from gpubench.images.variables import check_variables
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.model.variant import parse_variants
from gpubench.plan.check_result import CheckResult
from gpubench.plan.image_checks import BUILT, check_image
from gpubench.plan.node_kinds import check_node_kinds
from gpubench.plan.site_checks import check_site
from gpubench.report.sections import TextTable
from gpubench.resources.profiles import SET, Profile, known_issues, load_suite, read_profile, site_names
from gpubench.runtimes import RUNTIMES
from gpubench.schedulers import BATCH
from gpubench.schedulers.batch import BatchScheduler
from gpubench.sites.new_site import to_fill_in


def site_table() -> TextTable:
    sites = [read_profile(name).site() for name in site_names()]
    rows = [(site.name, " + ".join((site.scheduler, site.launcher, site.runtime)), site.description) for site in sites]
    return TextTable(("name", "adapters", "description"), rows, bare=True)


def profile_lines(name: str, settings: Sequence[str]) -> Iterator[str]:
    """The profile as TOML with all that it inherits; values that don't come from its own file name their source."""
    profile = read_profile(name, list(settings))
    profile.site()
    return _toml_lines(profile)


def check_profile(name: str, settings: Sequence[str]) -> Iterator[CheckResult]:
    """Check a profile by itself: a result for each check."""
    try:
        profile = read_profile(name, list(settings))
        site = profile.site()
    except UsageError as error:
        yield from (CheckResult(False, str(fault)) for fault in error.every)
        return
    yield CheckResult(True, f"{profile.source}: all keys are known")
    file = Path(profile.source.removesuffix(f" with {SET}"))
    to_fill = to_fill_in(file.read_text(encoding="utf-8")) if file.is_file() else []
    empty = [key for key in to_fill if not operator.attrgetter(key)(site)]  # --set may have filled it in
    yield from (CheckResult(False, f"{key} is empty, and {file} says that it must be filled in") for key in empty)
    for result in check_site(site):
        if result.ok or not any(result.what.startswith(f"{key} ") for key in empty):  # said already
            yield result
    kind = RUNTIMES[site.runtime].KIND if site.runtime in RUNTIMES else ""
    yield from check_image(site, kind)
    yield from _nodes(site)
    yield from _defaults(site, kind)


def _nodes(site: Site) -> Iterator[CheckResult]:
    """Where the site's scheduler answers on this machine: its nodes against the profile."""
    scheduler = BATCH.get(site.scheduler)
    try:
        kinds = scheduler.node_kinds() if isinstance(scheduler, BatchScheduler) else []
    except GpubenchError:  # the file can be checked anywhere
        return
    yield from check_node_kinds(site, kinds)


def _defaults(site: Site, kind: str) -> Iterator[CheckResult]:
    """Check what the profile names: files, variants, their variables, and the stacks that their images need."""
    try:
        load_suite(site.defaults.suite)
        rules = known_issues(site)
        variants = parse_variants(site.defaults.variants) if site.defaults.variants else []
        check_variables(site, variants)
        if kind in BUILT:
            stacks_for([variant.ucx for variant in variants], site)
    except GpubenchError as error:
        yield from (CheckResult(False, str(fault)) for fault in error.every)
        return
    issues = counted(len(rules), "known issue")
    yield CheckResult(True, f"suite {site.defaults.suite}, {issues}, default variants can be read")


def _toml_lines(profile: Profile) -> Iterator[str]:
    yield f"# {profile.source}; keys that aren't here have their defaults"
    table = ""
    for line in tomli_w.dumps(profile.plain).splitlines():
        if line.startswith("["):
            table = line.strip("[]") + "."
        key, equals, _ = line.partition(" = ")
        origin = profile.origins.get(f"{table}{key}", profile.source)
        elsewhere = equals and not line.startswith((" ", "[")) and origin != profile.source.removesuffix(" with --set")
        yield f"{line}  # {origin}" if elsewhere else line
