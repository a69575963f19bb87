"""Commits of UCX as points of a search, by a clone on this machine: the states of its branches between two of them."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from gpubench.campaign.bisection_points import PointList, as_typed, two_ends
from gpubench.errors import UsageError
from gpubench.images.compatibility import choose, stacks
from gpubench.images.obtain import kind_of
from gpubench.images.ucx_source import (
    commit_named,
    commits_between,
    local_repository,
    named_source,
    release_of,
    source_of,
)
from gpubench.images.ucx_specs import COMMIT
from gpubench.model.site import Site
from gpubench.model.variant import ImageSpec, parse_variant

SHORT = 10
"""Digits by which a commit is called."""
_BUILT_FROM_CLONE = "venv"
_COMMIT = "git:"


def commits_of(ends: Sequence[str], repository: Path, site: Site) -> PointList:
    """Both ends and every commit between them that one of their branches had, on one stack.

    Where neither end is an ancestor of the other, the way leads back to the newest commit that both have, and forward
    again.

    Raises:
        UsageError: not two ends, no commits of UCX in that repository, ends that differ in more than the commit, or a
            site whose images no search builds.
        PlanRefusedError: no stack runs the releases of both.
    """
    if not repository.is_dir():
        raise UsageError(f"--repo {repository} is no folder", then="clone UCX, with all branches that are searched")
    if (kind := kind_of(site)) != _BUILT_FROM_CLONE:
        raise UsageError(
            f"--over commits builds images of kind {_BUILT_FROM_CLONE}, and site {site.name} has images of kind {kind}",
            then="add --runtime venv; or gpubench images build REF@COMMIT for some commits, and list them: --points",
        )
    labels, specs, env = two_ends("commits", ends, otherwise="give both the same")
    sources = [source_of(repository, spec.ucx, site) for spec in specs]
    first, last = (source.commit for source in sources)
    if first == last:
        raise UsageError(f"both ends are commit {first[:SHORT]}", then="name two")
    commits = commits_between(repository, first, last)
    stack = specs[0].stack or choose([source.release for source in sources]).name
    # Where none was typed, the label is the whole variant, settings included.
    called = {commit: label.partition(",")[0] for commit, label in zip((first, last), labels, strict=True)}
    points = [
        as_typed(called.get(commit, commit[:SHORT]), ImageSpec(f"{_COMMIT}{commit}", stack, specs[0].packages), env)
        for commit in commits
    ]
    return PointList(tuple(points), tuple(commits.values()))


def with_commits(points: Sequence[str], site: Site) -> tuple[str, ...]:
    """Points, of which branches and tags of the site's clone are the commits that they are now.

    A branch may move while a search is on its way, and every step has to measure the same.
    """
    if kind_of(site) != _BUILT_FROM_CLONE:
        return tuple(points)
    fixed = []
    for point in points:
        variant = parse_variant(point)
        spec = ImageSpec.parse(variant.ucx)
        is_fixed = COMMIT.fullmatch(spec.ucx.removeprefix(_COMMIT))
        if not is_fixed and (source := named_source(spec.ucx, site)):
            spec = dataclasses.replace(spec, ucx=f"{_COMMIT}{source.commit}")
            point = as_typed(variant.label.partition(",")[0], spec, variant.env)  # noqa: PLW2901
        fixed.append(point)
    return tuple(fixed)


def objection(spec: ImageSpec, site: Site) -> str:
    """Why a commit between two ends can't be built, whatever is tried; empty: it may be, or it is none.

    Raises:
        UsageError: the clone can't be read, or lacks the commit.
    """
    repository = local_repository(site)
    if repository is None or not spec.ucx.startswith(_COMMIT):
        return ""
    commit = commit_named(repository, spec.ucx.removeprefix(_COMMIT))
    try:
        release = release_of(repository, commit)
    except UsageError as error:
        return str(error)
    row = next((row for row in stacks() if row.name == spec.stack), None)
    return "" if row is None or row.runs(release) else f"it is UCX {release}, and stack {row.name} runs {row.ucx}"
