"""A search on disk: ``bisect.json``, and below it one ordinary campaign per step.

The next step is a function of that file and of the finished steps (``gpubench.stats.bisection``), so a search that was
killed goes on as if it had not been.
"""

import dataclasses
import json
import logging
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.campaign import lifecycle
from gpubench.campaign.bisection_commits import objection
from gpubench.campaign.bisection_differences import DifferenceSpace, read_differences
from gpubench.campaign.bisection_packages import package_differences
from gpubench.campaign.bisection_points import PointList
from gpubench.campaign.bisection_settings import setting_differences
from gpubench.campaign.lock import directory_lock
from gpubench.campaign.observer import Observe, unobserved
from gpubench.campaign.options import CampaignOptions, option_name
from gpubench.campaign.planning import Images, plan_campaign, prepare_request
from gpubench.campaign.requests import parse_request
from gpubench.errors import BuildError, DataError, IncompleteError, InterruptedByUserError, UsageError
from gpubench.files import write_atomically
from gpubench.images.compatibility import choose
from gpubench.model.quantities import format_seconds
from gpubench.model.text import counted
from gpubench.model.variant import ImageSpec
from gpubench.node.spec.records import RAN
from gpubench.render.shell import command_line
from gpubench.results.loading import load
from gpubench.results.merge.environment_changes import planned_environment
from gpubench.results.merge.large_messages import another_way
from gpubench.results.merge.provenance import ProvenanceFacts, facts
from gpubench.schedulers.local import waited_s
from gpubench.stats.bisection import Begin, Extend, SearchAnswer, SearchSettings, Step, further_runs, further_steps
from gpubench.stats.margin import Margin
from gpubench.stats.setting_search import SettingAnswer
from gpubench.store.accounting import account
from gpubench.store.campaign import PLAN_FILE, SEARCH_FILE, Campaign

_log = logging.getLogger(__name__)

SCHEMA = "gpubench/bisect/1"
Space = PointList | DifferenceSpace


@dataclasses.dataclass(frozen=True)
class Search:
    """A search on disk.

    Args:
        directory: with ``bisect.json``.
        space: what its points are.
        workload: the name of the one that is measured.
        options: of every step's campaign.
        settings: of the decisions.
        unbuilt: points whose image can't be built, by label, with the reason.
        budget_s: seconds that this call may take; None: as long as it needs.
        longest_s: seconds of the longest measurement so far, building included.
    """

    directory: Path
    space: Space
    workload: str
    options: CampaignOptions
    settings: SearchSettings
    unbuilt: Mapping[str, str] = dataclasses.field(default_factory=dict)
    budget_s: float | None = None
    longest_s: float = 0.0

    @property
    def again(self) -> str:
        """The command that goes on with it."""
        return command_line(["gpubench", "bisect", str(self.directory)])

    def step_directory(self, number: int) -> Path:
        """Where the campaign of a step is, from 0."""
        return self.directory / f"step-{number:02d}"

    def campaigns(self) -> list[Campaign]:
        """Those of its steps that were planned."""
        paths = sorted(self.directory.glob(f"step-*/{PLAN_FILE}"))
        return [Campaign.open(path.parent) for path in paths]

    def steps(self) -> list[Step]:
        """The steps so far, of which the last may be unfinished; raises DataError for one of another search or gone."""
        steps: list[Step] = []
        while True:
            directory = self.step_directory(len(steps))
            begin = self.space.next_move(steps, self.settings)
            if isinstance(begin, Begin) and self._has_no_runs(begin):
                steps.append(Step(begin.kind, begin.points, (), 0))
            elif not (directory / PLAN_FILE).exists():
                later = [path.parent for path in self.directory.glob(f"*/{PLAN_FILE}") if path.parent > directory]
                if later:
                    raise DataError(f"{directory} is missing, and {min(later)} is there", then="restore it")
                return steps
            else:
                campaign = Campaign.open(directory)
                labels = [variant.label for variant in campaign.plan.variants]
                if not isinstance(begin, Begin) or labels != [self.space.label(at) for at in self.built(begin)]:
                    raise DataError(f"{directory} is no step of {self.directory / SEARCH_FILE}", then="restore both")
                blocks = self._blocks(campaign, begin.points)
                steps.append(Step(begin.kind, begin.points, blocks, len(_planned_blocks(campaign))))

    def built(self, begin: Begin) -> list[int]:
        """The points of a step whose image can be built, as far as anybody has tried."""
        return [point for point in begin.points if self.space.label(point) not in self.unbuilt]

    def _has_no_runs(self, begin: Begin) -> bool:
        """Whether so few points can be built that there is nothing to measure."""
        built = self.built(begin)
        only_ends = isinstance(self.space, PointList) and begin.kind == "search" and len(built) == 2
        return only_ends or len(built) < 2

    def _blocks(self, campaign: Campaign, of_step: Sequence[int]) -> tuple[Mapping[int, float], ...]:
        """The finished blocks of a step: the log of each point's figure where its run is ok."""
        results = load(campaign.directory)
        points = {self.space.label(point): point for point in of_step}
        uncounted = self.space.uncounted(campaign, Campaign.open(self.step_directory(0)))
        blocks: dict[int, dict[int, float]] = {}
        ended: dict[int, int] = {}
        nodes = campaign.jobs[0].nodes
        for run in results.runs:
            by_plan = run.status == "skipped" and campaign.plan.skip_reason(nodes, run.variant)
            if run.block is None or not (run.status in RAN or by_plan):
                continue
            ended[run.block] = ended.get(run.block, 0) + 1
            logs = blocks.setdefault(run.block, {})
            if run.times and run.run not in uncounted:
                logs[points[run.variant]] = math.log(statistics.fmean(run.times))
        complete = len(campaign.plan.variants)
        return tuple(blocks[block] for block in _planned_blocks(campaign) if ended.get(block) == complete)


def write_document(directory: Path, document: Mapping[str, Any]) -> None:
    write_atomically(directory / SEARCH_FILE, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _add(directory: Path, key: str, value: Any) -> None:
    document = json.loads((directory / SEARCH_FILE).read_text(encoding="utf-8"))
    write_document(directory, {**document, key: value})


def open_search(directory: Path) -> Search:
    """A search that was begun; raises UsageError where there is none, DataError where its file is damaged."""
    path = directory / SEARCH_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        options, settings = document["options"], document["settings"]
        outputs = Path(options["outputs"]) if options["outputs"] else None
        return Search(
            directory,
            _space(document),
            document["workload"],
            CampaignOptions(**{**options, "outputs": outputs}),
            SearchSettings(**{**settings, "margin": Margin(settings["margin"])}),
            document.get("unbuilt", {}),
            longest_s=float(document.get("longest_s", 0.0)),
        )
    except FileNotFoundError:
        raise UsageError(
            f"{directory} is no search: it has no {SEARCH_FILE}", then="name the directory of a search"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is damaged: {error}", then="restore it from a copy") from None


def _space(document: Mapping[str, Any]) -> Space:
    points = tuple(document["points"])
    if "over" not in document:
        return PointList(points, tuple(document.get("subjects", ())))
    differences = read_differences(document["differences"]) if "differences" in document else None
    return DifferenceSpace(document["over"], points, differences)


def _prepared(search: Search, steps: Sequence[Step]) -> Search:
    """With the differences of its ends, found once and kept in the file, when they are first needed."""
    space = search.space
    if not isinstance(space, DifferenceSpace) or not space.lacks_differences(steps, search.settings):
        return search
    ends = Campaign.open(search.step_directory(0))
    differences = package_differences(ends) if space.over == "packages" else setting_differences(ends, steps[0])
    differences = dataclasses.replace(differences, stacks=_stacks_to_name(ends))
    count = len(differences.searched)
    least = math.ceil(math.log2(count)) + 2 if count > 1 else 2
    what = counted(count, space.over.removesuffix("s"))
    more = f": {least} further steps or more; 1 if it is none of them" if count else ""
    _log.info(f"{what} to search{more}")
    _add(search.directory, "differences", dataclasses.asdict(differences))
    return dataclasses.replace(search, space=dataclasses.replace(space, differences=differences))


def _stacks_to_name(campaign: Campaign) -> tuple[str, str]:
    """The stacks of both ends, where an end without the other would be built on another one; else empty."""
    manifests = campaign.manifests()
    stacks = []
    is_needed = False
    for variant in campaign.plan.variants:
        spec = ImageSpec.parse(variant.ucx)
        if variant.image is None or variant.image.kind != "venv":
            return "", ""
        manifest = manifests[variant.image.manifest]
        stacks.append(str(manifest["stack"]["name"]))
        is_needed |= not spec.stack and choose([str(manifest["ucx"]["release"])]).name != stacks[-1]
    return (stacks[0], stacks[1]) if is_needed else ("", "")


def run_search(
    search: Search, observe: Observe = unobserved
) -> tuple[Search, list[Step], SearchAnswer | SettingAnswer]:
    """Measure until the search has an answer; the search with all that was found out for it, its steps, the answer.

    Where the budget is used and a change is named already, that is the answer.

    Raises:
        UsageError: another process is at work on it.
        IncompleteError: a step's runs can't be completed, or the budget is used.
        InterruptedByUserError: Ctrl-C or a signal; says how to go on.
        GpubenchError: as ``lifecycle.run`` and ``lifecycle.resume``.
    """
    with directory_lock(search.directory, "begin another search"):
        begin, longest, finished = _at_work_s(), search.longest_s, -1
        while True:
            passed = _at_work_s() - begin
            steps = search.steps()
            search = _prepared(search, steps)
            move = search.space.next_move(steps, search.settings)
            if not isinstance(move, Begin | Extend):
                return search, steps, move
            if search.budget_s is not None and passed + longest > search.budget_s:
                if so_far := search.space.answer_so_far(steps, search.settings):
                    return search, steps, so_far
                raise IncompleteError(
                    f"no answer yet after {format_seconds(passed)}: the next measurement may not end in --budget",
                    then=f"to go on: {search.again}",
                )
            points = len(search.space.points) if isinstance(search.space, PointList) else 0
            if points > 2 and isinstance(move, Begin) and len(steps) == 1:
                _log.info(_outlook(points, longest / (2 * len(steps[0].blocks) or 1), search.settings))
            blocks = sum(len(step.blocks) for step in steps)
            if blocks == finished:
                raise IncompleteError(
                    f"{search.step_directory(len(steps) - 1)}: a block can't be completed",
                    then=f"gpubench status {search.step_directory(len(steps) - 1)} says why",
                )
            finished = blocks
            try:
                unbuilt = _measure(search, steps, move, observe)
            except InterruptedByUserError as stopped:
                why = str(stopped).partition(";")[0]
                raise InterruptedByUserError(why, then=f"to go on: {search.again}") from None
            longest = max(longest, round(_at_work_s() - begin - passed, 1))
            _add(search.directory, "longest_s", longest)
            if unbuilt:
                search = dataclasses.replace(search, unbuilt={**search.unbuilt, **unbuilt})
                _add(search.directory, "unbuilt", search.unbuilt)
                finished = -1


def _at_work_s() -> float:
    """A clock that stands still while another job has the machine: a search pays only for its own measurements."""
    return time.monotonic() - waited_s()


def _outlook(count: int, run_s: float, settings: SearchSettings) -> str:
    """How many steps and runs a list of points takes, and how long if a run takes ``run_s``, as before; 0: unknown."""
    steps, runs = further_steps(count), further_runs(count, settings)
    price = f", {format_seconds(runs * run_s)} at the pace of the first step" if run_s else ""
    return (
        f"{counted(count - 2, 'point')} between the ends: {counted(steps, 'further step')} for one change, "
        f"{runs} runs or more{price}"
    )


def answered(search: Search) -> tuple[Search, list[Step], SearchAnswer | SettingAnswer]:
    """A search, its steps and its answer, or that so far; raises IncompleteError where it has none yet."""
    space, steps = search.space, search.steps()
    is_asked = isinstance(space, DifferenceSpace) and space.lacks_differences(steps, search.settings)
    move = space.next_move(steps, search.settings)
    if isinstance(move, Begin | Extend):
        move = space.answer_so_far(steps, search.settings) or move
    if is_asked or isinstance(move, Begin | Extend):
        raise IncompleteError(f"{search.directory} has no answer yet", then=f"to go on: {search.again}")
    return search, steps, move


def binding_notes(search: Search, answer: SearchAnswer) -> list[str]:
    """What the binding sets at one of two neighbours alone: it may be the cause as well as the code of the version."""
    by_binding: dict[str, Mapping[str, str]] = {}
    for campaign in search.campaigns() if answer.shown else []:
        sides = planned_environment(campaign.plan, campaign.manifests()).sides
        by_binding |= {label: side.by_binding for label, side in sides.items()}
    label = search.space.label
    pairs = [(change.low, change.high) for change in answer.shown]
    return [
        f"{alone} alone has {name}={value}, set by the binding: that may be the cause, not the version; "
        f"this tells: {_over_settings(search, low, high)}"
        for low, high in pairs
        for alone, other in ((label(low), label(high)), (label(high), label(low)))
        for name, value in by_binding[alone].items()
        if by_binding[other].get(name) != value
    ]


def way_notes(search: Search, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """How UCX moves large messages, where each pair of labels differs in that."""
    seen: dict[str, list[ProvenanceFacts]] = {label: [] for pair in pairs for label in pair}
    for campaign in search.campaigns() if pairs else []:
        for run in account(campaign).outcomes:
            if run.directory and run.run.variant in seen:
                seen[run.run.variant].append(facts(run.provenance))
    lines = (another_way({label: seen[label] for label in pair}) for pair in pairs)
    return [*filter(None, lines)]


def _over_settings(search: Search, low: int, high: int) -> str:
    ends = " ".join(map(search.space.variant, (low, high)))
    command = ["gpubench", "bisect", "--over", "settings", *typed_options(search.options)]
    return command_line([*command, "--workload", search.workload, "--variants", ends])


def typed_options(options: CampaignOptions) -> list[str]:
    """The options of a search as they are typed, for another measurement like its own."""
    typed: list[str] = []
    for field in dataclasses.fields(CampaignOptions):
        value = getattr(options, field.name)
        if value != field.default and field.name not in ("seed", "outputs", "workloads"):
            option = option_name(field.name)
            for each in value if isinstance(value, list) else [value]:
                typed += [option] if each is True else [option, str(each)]
    return typed


def _measure(search: Search, steps: Sequence[Step], move: Begin | Extend, observe: Observe) -> Mapping[str, str]:
    """Measure what comes next; or find that some of its points can't be built: their labels, with reasons."""
    if isinstance(move, Extend):
        step = steps[-1]
        missing = len(step.blocks) < step.planned
        lifecycle.resume(search.step_directory(len(steps) - 1), 0 if missing else move.blocks, observe)
        return {}
    points = search.built(move)
    labels = ", ".join(map(search.space.label, points))
    _log.info(f"step {len(steps)}: {counted(move.blocks, 'block')} of {labels}")
    seed = None if search.options.seed is None else search.options.seed + len(steps)
    variants = " ".join(map(search.space.variant, points))
    # What was typed has been checked by then; what UCX itself lists may be newer than the table of known variables.
    unknown = search.options.allow_unknown_env or (isinstance(search.space, DifferenceSpace) and bool(steps))
    options = dataclasses.replace(
        search.options, variants=variants, blocks=str(move.blocks), seed=seed, allow_unknown_env=unknown
    )
    request = parse_request(options)
    workloads = [item for item in request.workloads if item.name == search.workload]
    request = dataclasses.replace(request, workloads=workloads)
    tried = {point for step in steps for point in step.points}
    new = {search.space.label(point) for point in points if steps and point not in tried}
    specs = {variant.label: ImageSpec.parse(variant.ucx) for variant in request.variants if variant.label in new}
    unbuilt = {label: reason for label, spec in specs.items() if (reason := objection(spec, request.site))}
    if not unbuilt:
        try:
            request, images = prepare_request(request, options, by_history=False)
        except BuildError as error:
            failed = {variant.label for variant in request.variants if variant.ucx == error.spec}
            if not failed or failed - new:
                raise
            unbuilt = dict.fromkeys(failed, error.what)
    if unbuilt:
        for label, reason in unbuilt.items():
            _log.warning(f"{label} is skipped: {reason}")
        return unbuilt
    if not steps and isinstance(search.space, DifferenceSpace) and search.space.over == "packages":
        _require_unlike_packages(images)
    lifecycle.run(plan_campaign(request, options, images, out=search.step_directory(len(steps))), observe=observe)
    return {}


def _require_unlike_packages(images: Images) -> None:
    """Raise UsageError where both ends have the same packages: there is nothing to search."""
    packages = [manifest["stack"]["packages"] for _, manifest in filter(None, images.values())]
    if len(packages) == len(images) and all(each == packages[0] for each in packages):
        raise UsageError("the images of both ends have the same packages", then="search --over settings or versions")


def _planned_blocks(campaign: Campaign) -> list[int]:
    """Numbers of the blocks that count: a block that was replaced counts by the one in its place."""
    blocks = [block for job in campaign.jobs for block in job.blocks]
    replaced = {block.replaces for block in blocks}
    return sorted(block.block for block in blocks if block.block not in replaced)
