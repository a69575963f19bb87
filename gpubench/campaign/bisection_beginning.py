"""Begin a search: from what a user says to a search on disk, of which nothing is measured yet."""

import dataclasses
import datetime as dt
from pathlib import Path

from gpubench import __version__
from gpubench.campaign.bisection import SCHEMA, Search, Space, open_search, write_document
from gpubench.campaign.bisection_commits import commits_of, with_commits
from gpubench.campaign.bisection_differences import DifferenceSpace, Over, difference_ends
from gpubench.campaign.bisection_points import PointList, versions_between
from gpubench.campaign.bisection_question import largest_regression, options_for
from gpubench.campaign.option_values import chosen_settings, chosen_values
from gpubench.campaign.options import CampaignOptions
from gpubench.campaign.requests import parse_request
from gpubench.errors import UsageError
from gpubench.images.obtain import obtain_images
from gpubench.model.base import nearest
from gpubench.model.site import Site
from gpubench.model.variant import parse_variant
from gpubench.resources.profiles import load_site, outputs_of
from gpubench.results.judging import judge_campaign
from gpubench.results.targets import chosen_campaign
from gpubench.stats.bisection import SearchSettings
from gpubench.stats.margin import Margin
from gpubench.store.campaign import SEARCH_FILE, create_campaign

NOT_CHOSEN = ("ucx", "variants", "blocks")
"""Options of a campaign that a search decides itself."""
VERSIONS, COMMITS = "versions", "commits"
DIFFERENCES: tuple[Over, ...] = ("settings", "packages")


@dataclasses.dataclass(frozen=True)
class SearchQuestion:
    """What is searched, as a user says it.

    Args:
        points: variants, separated by blanks.
        over: ``versions``, ``settings``, ``packages`` or ``commits``, between two ends; None: versions where there are
            some between.
        workload: its name; None: the only one, or that of the largest regression.
        repository: of UCX, for commits.
    """

    points: str | None = None
    over: str | None = None
    workload: str | None = None
    repository: Path | None = None


def chosen_search(directory: Path | None, question: SearchQuestion, options: CampaignOptions) -> Search:
    """The search that a user means: one on disk, or a new one.

    Args:
        directory: of a search; or of a campaign, whose largest regression is searched; None: the newest campaign,
            where neither points nor ends are given.

    Raises:
        UsageError: words that exclude each other, no regression, and as ``begin_search`` and ``open_search``.
    """
    budget_s = chosen_values(options).get("budget")  # refuses what excludes each other, too
    search = _chosen(directory, question, dataclasses.replace(options, budget=None))
    return dataclasses.replace(search, budget_s=budget_s)


def _chosen(directory: Path | None, question: SearchQuestion, options: CampaignOptions) -> Search:
    points, over, workload = question.points, question.over, question.workload
    is_search = directory is not None and (directory / SEARCH_FILE).exists()
    if question.repository is not None and over != COMMITS and not is_search:
        raise UsageError("--repo is where --over commits finds them", then="add --over commits, or leave --repo out")
    if points is not None:
        if over is not None or directory is not None:
            raise UsageError("--points are those of a new search", then="leave --over and the directory out")
        return begin_search(PointList(tuple(points.split())), workload, options)
    if directory is not None and is_search:
        if question != SearchQuestion() or options != CampaignOptions():
            raise UsageError(f"{directory} has its options already", then="leave them out")
        return open_search(directory)
    typed = options.variants or (options.ucx or "").replace(",", " ")
    if typed:
        if directory is not None:
            raise UsageError(f"{directory} has its own variants", then="leave out one or the other")
        if over is None:
            raise UsageError("two variants need --over", then="add --over versions or --over settings")
        ends = typed.split()
    else:
        judged = judge_campaign(chosen_campaign(directory, options.outputs, with_results=True))
        regression = largest_regression(judged, workload)
        options, workload, ends = options_for(judged, regression, options), regression.workload, list(regression.ends)
        over = over or (VERSIONS if regression.steps_of_versions > 1 else "settings")
    options = dataclasses.replace(options, variants=None, ucx=None)
    if over == COMMITS:
        if question.repository is None:
            raise UsageError("--over commits needs a clone of UCX", then="add --repo DIR")
        repository = question.repository.expanduser().resolve()
        options = dataclasses.replace(
            options, settings=[*(options.settings or []), f"image.ucx_repository={repository}"]
        )
        site = load_site(options.site, chosen_settings(options))
        return begin_search(commits_of(ends, repository, site), workload, options)
    sets = {name: name for name in DIFFERENCES}
    space = difference_ends(sets[over], ends) if over in sets else PointList(tuple(versions_between(ends)))
    return begin_search(space, workload, options)


def begin_search(space: Space, workload: str | None, options: CampaignOptions) -> Search:
    """A new search below the outputs; nothing is measured yet.

    Args:
        space: what is searched.
        workload: name of a workload of the suite; None where the suite has one alone.

    Raises:
        UsageError: too few points, an option that a search decides itself, no such workload, version or package.
        PlanRefusedError: no stack runs a point.
    """
    given = [name for name in NOT_CHOSEN if getattr(options, name) is not None]
    if given:
        raise UsageError(f"--{given[0]}: a search chooses points and blocks itself", then="leave it out")
    if len(space.points) < 2:
        raise UsageError("a search needs two points at least", then='for example --points "a=1.17.0 b=1.18.1 c=1.19.0"')
    request = parse_request(dataclasses.replace(options, variants=" ".join(space.points)))
    if len(request.nodes) * len(request.workers) != 1:
        raise UsageError("a search has one number of nodes and of workers", then="name one of each")
    names = [item.name for item in request.workloads]
    if workload is None and len(names) > 1:
        raise UsageError(f"suite {request.suite} has {len(names)} workloads", then=f"--workload {names[0]}, or another")
    if workload is not None and names.count(workload) != 1:
        fault = "has no workload" if workload not in names else "has several workloads"
        raise UsageError(f"suite {request.suite} {fault} '{workload}'{nearest(workload, names)}")
    space = dataclasses.replace(space, points=with_commits(space.points, request.site))
    _require_known(space, request.site, options)
    suite = _from_anywhere(options.suite) if options.suite else None
    options = dataclasses.replace(options, site=_from_anywhere(options.site), suite=suite)
    now = dt.datetime.now(dt.UTC)
    outputs = outputs_of(request.site, options.outputs)
    directory = create_campaign(outputs, f"{request.site.name}-bisect", request.suite, now)
    search = Search(directory, space, workload or names[0], options, SearchSettings(margin=Margin(request.margin)))
    document = {
        "schema": SCHEMA,
        "gpubench": __version__,
        "created_at": now.isoformat(),
        **({"over": space.over} if isinstance(space, DifferenceSpace) else {}),
        "points": list(space.points),
        **({"subjects": list(space.subjects)} if isinstance(space, PointList) and space.subjects else {}),
        "workload": search.workload,
        "options": {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()},
        "settings": dataclasses.asdict(search.settings),
    }
    write_document(directory, document)
    return search


def _require_known(space: Space, site: Site, options: CampaignOptions) -> None:
    """Refuse a typed point that no image can be of; nothing is built."""
    are_commits = isinstance(space, PointList) and space.subjects
    typed = (space.points[0], space.points[-1]) if are_commits else space.points
    specs = [parse_variant(point).ucx for point in typed]
    obtain_images(site, specs, date=options.date, base=options.base, look_only=True)


def _from_anywhere(name: str) -> str:
    """The name of a profile or suite, or the whole path of a file: a search may go on from another directory."""
    return str(Path(name).absolute()) if name.endswith(".toml") else name
