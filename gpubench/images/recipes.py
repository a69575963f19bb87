"""From UCX specs and a site to recipes: which stack, and where UCX comes from. Each choice is made here, once."""

import difflib
import functools
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence

from gpubench.errors import MissingToolError, PlanRefusedError, UsageError
from gpubench.images.compatibility import Stack, admitted, newest_cuda, refusal, runs, stacks
from gpubench.images.process import without_logins
from gpubench.images.ucx_specs import RequestedUcx, parse
from gpubench.images.wheels import Wheel, resolve
from gpubench.model.base import nearest
from gpubench.model.recipe import Recipe
from gpubench.model.site import ImageSettings, Site
from gpubench.model.text import version_key
from gpubench.render.ucx import FABRIC

LISTING_S = 60.0
"""One listing of a repository's refs takes about a second."""

_REF_LINE = re.compile(r"([0-9a-f]{40})\trefs/(heads|tags)/(\S+)")

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.:=~-]*")


def refs(repository: str) -> dict[str, str]:
    """Commit by branch and tag; a tag wins over a branch of the same name, as git itself decides.

    Raises:
        MissingToolError: git isn't installed, or the repository doesn't answer.
    """
    shown = without_logins(repository)
    # Nothing may ask at the terminal or in a window: a build waits for nobody.
    env = {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes", **os.environ}
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
    why = ""
    try:
        done = subprocess.run(
            ["git", "ls-remote", "--heads", "--tags", "--", repository],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LISTING_S,
            check=False,
        )
    except (FileNotFoundError, PermissionError):
        raise MissingToolError("git, which resolves UCX branches, is not installed", then="install git") from None
    except subprocess.TimeoutExpired:
        why = f"no answer within {LISTING_S:.0f} s"
    else:
        if done.returncode:
            why = next(iter(without_logins(done.stderr).strip().splitlines()), f"git ended with {done.returncode}")
    if why:
        raise MissingToolError(
            f"the git repository {shown} doesn't answer ({why})",
            then="check the network and image.ucx_repository, or pin the commit by hand: REF@COMMIT",
        )
    return _by_name(done.stdout)


def commit_of(repository: str, ref: str, commits: Mapping[str, str] | None = None) -> str:
    """The commit (40 hexadecimal digits) of a branch or tag; ``commits`` are refs that were listed before.

    Raises:
        UsageError: the repository has no such ref; names the nearest.
        MissingToolError: git isn't installed, or the repository doesn't answer.
    """
    by_name = refs(repository) if commits is None else commits
    if ref in by_name:
        return by_name[ref]
    near = difflib.get_close_matches(ref, sorted(by_name), n=1, cutoff=0.5)
    raise UsageError(
        f"{without_logins(repository)} has no branch or tag '{ref}'",
        then=f"nearest: {near[0]}" if near else "see git ls-remote",
    )


def _by_name(listing: str) -> dict[str, str]:
    heads: dict[str, str] = {}
    tags: dict[str, str] = {}
    for line in listing.splitlines():
        if match := _REF_LINE.fullmatch(line):
            commit, kind, name = match.groups()
            # The line of an annotated tag's commit (NAME^{}) follows that of the tag's own object.
            (heads if kind == "heads" else tags)[name.removesuffix("^{}")] = commit
    return heads | tags


def recipes(specs: Sequence[str], site: Site, *, stack: str = "") -> list[Recipe]:
    """One recipe per spec: all on one stack where one can carry them all, else each on the first that can carry it.

    ``stack`` forces a row of the table. A git ref whose repository doesn't answer keeps an empty commit: see
    ``unresolved``.

    Raises:
        UsageError: an unknown spec, git ref, stack or base.
        PlanRefusedError: no row of the table can run on this site with that UCX; names the nearest that can.
    """
    rows = stacks_for(specs, site, stack=stack)
    settings = site.image

    @functools.cache
    def commits_by_name() -> dict[str, str] | None:
        """The repository is asked once at most; None where it doesn't answer."""
        try:
            return refs(settings.ucx_repository)
        except MissingToolError:
            return None

    def commit(ref: str) -> str:
        commits = commits_by_name()
        return "" if commits is None else commit_of(settings.ucx_repository, ref, commits)

    triples = zip(specs, map(parse, specs), rows, strict=True)
    return [_recipe(spec, ucx, row, site, commit) for spec, ucx, row in triples]


def stacks_for(specs: Sequence[str], site: Site, *, stack: str = "") -> list[Stack]:
    """The row of the table for each spec; nothing outside this process is asked. Raises as ``recipes``."""
    _check(site.image)
    requested = [parse(spec) for spec in specs]
    rows = _rows(stack)
    candidates = admitted(rows, site)
    common = next((row for row in candidates if all(runs(row, ucx) for ucx in requested)), None)
    chosen = [common or next((row for row in candidates if runs(row, ucx)), None) for ucx in requested]
    for spec, ucx, row in zip(specs, requested, chosen, strict=True):
        if row is None:
            raise refusal(spec, ucx, rows, candidates, site)
    return [row for row in chosen if row]


def unresolved(recipe: Recipe) -> bool:
    """Whether the commit of a git ref isn't known: its Dockerfile can be written, but not built."""
    return recipe.source == "git" and not recipe.ucx_commit


def _check(settings: ImageSettings) -> None:
    """Whatever enters a Dockerfile unquoted is checked here."""
    if not _IMAGE.fullmatch(settings.base):
        raise UsageError(f"'{settings.base}' is no name of an image", then="write it as in docker pull, like debian:12")
    for package in settings.packages:
        if not _PACKAGE.fullmatch(package):
            raise UsageError(f"image.packages: '{package}' is no package of a distribution")
    for word in settings.fabric:
        if word not in FABRIC:
            raise UsageError(f"image.fabric: unknown word '{word}'{nearest(word, FABRIC)}")
    if without_logins(settings.ucx_repository) != settings.ucx_repository:
        raise UsageError(
            "image.ucx_repository holds credentials, which would be stored in every image",
            then="leave them to git's credential helper",
        )


def _rows(name: str) -> list[Stack]:
    if not name:
        return list(stacks())
    rows = [row for row in stacks() if row.name == name]
    if not rows:
        raise UsageError(f"there is no stack '{name}'{nearest(name, [row.name for row in stacks()])}")
    return rows


def _recipe(spec: str, ucx: RequestedUcx, row: Stack, site: Site, commit: Callable[[str], str]) -> Recipe:
    settings = site.image
    row = row.on_gpus(site.has_gpus)
    wheel = _wheel(spec, ucx, row, site)
    source = "wheel" if wheel else "git" if ucx.kind in ("release", "git") else ucx.kind
    ref = f"v{ucx.name}" if ucx.kind == "release" else ucx.name
    version = wheel.version if wheel else ref if source == "git" else source
    bound = source != "none"
    driver = newest_cuda(settings.cuda, settings.compute_capability)
    if source == "git" and site.has_gpus and not driver:
        raise PlanRefusedError(
            f"UCX '{spec}' is compiled, and site {site.name} doesn't say for which CUDA: it would be without",
            then="name the newest that the driver runs (nvidia-smi shows it): --set image.cuda=12.4",
        )
    return Recipe(
        spec=spec,
        source=source,
        ucx_version=version,
        ucx_release="none" if source == "none" else ucx.release,
        ucx_commit=(ucx.commit or commit(ref)) if source == "git" else "",
        ucx_repository=settings.ucx_repository if source == "git" else "",
        wheel_sha256=wheel.sha256[settings.architecture] if wheel else "",
        stack=row.name,
        binding=row.binding if bound else "none",
        binding_version=row.binding_version if bound else "",
        dask=row.dask,
        rapids=row.rapids,
        scheme=row.scheme if bound else "tcp",
        stack_source=row.packages,
        lock=row.lock,
        python=row.python.min,
        python_max=row.python.max,
        gpus=site.has_gpus,
        cuda=min(driver, row.cuda.max, key=version_key) if driver and row.cuda else "",
        site=site.name,
        settings=settings,
        base=settings.base,
    )


def _wheel(spec: str, ucx: RequestedUcx, row: Stack, site: Site) -> Wheel | None:
    """The wheel that a release comes from; None: it is built from its git tag, or isn't a release at all.

    Raises:
        PlanRefusedError: a wheel was asked for by name, and the site or the stack can't use it.
    """
    if ucx.kind not in ("release", "wheel"):
        return None
    forced = ucx.kind == "wheel" or ".post" in ucx.name
    why = _no_wheel(ucx, row, site)
    if why and not forced:
        return None
    if why:
        raise PlanRefusedError(
            f"UCX '{spec}' can't come from a wheel on site {site.name}: {why}",
            then=f"write {ucx.release}, and it is built from its git tag",
        )
    return resolve(ucx.name)


def _no_wheel(ucx: RequestedUcx, row: Stack, site: Site) -> str:
    """Why a wheel won't do; empty: it will."""
    fabric, architecture = site.image.fabric, site.image.architecture
    if fabric:
        return f"wheels are built without {' and '.join(fabric)}, which the profile expects (image.fabric)"
    if row.packages != "wheels":
        return f"{row.binding} of stack {row.name} is compiled against UCX's own headers"
    try:
        wheel = resolve(ucx.name)
    except UsageError:
        return f"there is no wheel of UCX {ucx.name}"
    return "" if architecture in wheel.sha256 else f"there is no wheel for {architecture}"
