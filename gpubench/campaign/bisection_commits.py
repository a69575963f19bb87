"""The points of a search over commits: the states of UCX's branches between two of them, by a clone on this machine."""

from collections.abc import Sequence
from pathlib import Path

from gpubench.campaign.bisection_points import PointList
from gpubench.errors import UsageError
from gpubench.images.compatibility import choose
from gpubench.images.specs import parse
from gpubench.images.ucx_source import UcxSource, commit_named, commits_between, release_of
from gpubench.model.variant import ImageSpec, parse_variants

SHORT = 10
"""Digits by which a commit is called."""


def commits_of(ends: Sequence[str], repository: Path) -> PointList:
    """Both ends and every commit between them that one of their branches had, on one stack.

    Where neither end is an ancestor of the other, the way leads back to the newest commit that both have, and forward
    again.

    Raises:
        UsageError: not two ends, no commits of UCX in that repository, or ends that differ in more than the commit.
        PlanRefusedError: no stack runs the releases of both.
    """
    if not repository.is_dir():
        raise UsageError(f"--repo {repository} is no folder", then="clone UCX, with all branches that are searched")
    variants = parse_variants(list(ends))
    if len(variants) != 2:
        raise UsageError(f"--over commits needs two ends, and --variants has {len(variants)}", then="name two")
    first, last = (ImageSpec.parse(variant.ucx) for variant in variants)
    if (first.stack, first.packages, variants[0].env) != (last.stack, last.packages, variants[1].env):
        raise UsageError(
            "--over commits searches commits alone, and the ends differ in stack, packages or settings too",
            then="give both the same",
        )
    found = [commit_named(repository, _ref(spec.ucx)) for spec in (first, last)]
    if found[0] == found[1]:
        raise UsageError(f"both ends are commit {found[0][:SHORT]}", then="name two")
    commits = commits_between(repository, *found)
    sources = [UcxSource(repository, commit, release_of(repository, commit)) for commit in found]
    stack = first.stack or choose(sources).name
    settings = "".join(f",{name}={value}" for name, value in variants[0].env.items())
    # Where none was typed, the label is the whole variant, settings included.
    labels = {commit: end.label.partition(",")[0] for commit, end in zip(found, variants, strict=True)}
    points = [
        f"{labels.get(commit, commit[:SHORT])}={ImageSpec(f'git:{commit}', stack, first.packages)}{settings}"
        for commit in commits
    ]
    return PointList(tuple(points), tuple(commits.values()))


def _ref(text: str) -> str:
    requested = parse(text)
    return requested.commit or requested.name
