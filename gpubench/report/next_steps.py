"""What to do next: commands to type, why, and what they cost."""

import dataclasses
import datetime as dt
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from gpubench.campaign.bisection_question import largest_regression
from gpubench.errors import UsageError
from gpubench.model.cell_names import cell_names
from gpubench.model.plan import Place
from gpubench.model.quantities import format_seconds
from gpubench.model.text import counted
from gpubench.model.variant import ImageSpec, parse_variant
from gpubench.render.shell import command_line
from gpubench.report import labels
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.stats.bisection import SearchSettings, further_runs
from gpubench.stats.power import MOST_FURTHER
from gpubench.stats.verdict import Verdict
from gpubench.store.accounting import RunResult, missing_runs, over_budget
from gpubench.store.campaign import SEARCH_FILE

_OPEN = "More blocks would not decide what is inconclusive: its reason stands with the verdicts."
_DECIDED = "Nothing has to be run: every comparison is decided."
_ALONE = "One variant was measured: a verdict needs a second one to compare it with."
_MOST_BLOCKS = MOST_FURTHER
"""Most blocks that a command proposes; if more are needed, a quieter machine is better."""


@dataclasses.dataclass(frozen=True)
class NextStep:
    """``command`` may be empty: then ``why`` is advice without a command."""

    command: str
    why: str


def next_steps(inputs: JudgedCampaign) -> list[NextStep]:
    """The commands, the most important one first."""
    missing = missing_runs(inputs.plan, inputs.outcomes)
    search = inputs.results.place.parent
    if (search / SEARCH_FILE).exists():
        return [*_of_search(str(search), len(missing)), *_causes(inputs)]
    late = [outcome for outcome in inputs.outcomes if over_budget(outcome)]
    further = _more_blocks(inputs, [*missing, *late])
    failed = sum(outcome.status == "failed" for outcome in inputs.outcomes)
    logs = NextStep(_typed(inputs, "logs"), f"why {counted(failed, 'run')} failed")
    rest = list(_rest(inputs, missing, late)) or (
        [logs] if failed else []
    )  # one at a time: what is missing comes first
    decided = _DECIDED if inputs.verdicts else _ALONE
    return [*rest, *further, *_causes(inputs), *_search(inputs)] or [
        NextStep("", _OPEN if _undecided(inputs.verdicts) else decided)
    ]


def _of_search(search: str, missing: int) -> Iterator[NextStep]:
    """A search alone adds blocks to its steps: how many a step has is fixed before the first of them."""
    if missing:
        why = f"{counted(missing, 'run')} of this step of a search {'are' if missing > 1 else 'is'} missing"
        yield NextStep(command_line(["gpubench", "bisect", search]), why)
    else:
        yield NextStep(command_line(["gpubench", "report", search]), "the answer of the search that this is a step of")


def _typed(inputs: JudgedCampaign, *command: str) -> str:
    """The command line of an action on the campaign, whose name or directory comes last."""
    return command_line(["gpubench", *command, inputs.target])


def _block_s(inputs: JudgedCampaign) -> dict[Place, float]:
    """Seconds of a block at each place: the median of those that ran there, else of all that ran, else as planned."""
    spans: dict[tuple[Place, int], list[dt.datetime]] = {}
    for outcome in inputs.outcomes:
        if outcome.record and outcome.status != "skipped":
            times = [dt.datetime.fromisoformat(at) for at in (outcome.record.started_at, outcome.record.ended_at)]
            spans.setdefault((outcome.job.place, outcome.block.block), []).extend(times)
    seconds: dict[Place, list[float]] = {}
    for (place, _), times in spans.items():
        seconds.setdefault(place, []).append((max(times) - min(times)).total_seconds())
    every = [span for of_place in seconds.values() for span in of_place] or [inputs.plan.time.block_s]
    return {place: statistics.median(seconds.get(place, every)) for place in inputs.plan.places}


def _rest(inputs: JudgedCampaign, missing: Sequence[RunResult], late: Sequence[RunResult]) -> Iterator[NextStep]:
    """What was planned and didn't run: one command for both."""
    why = [f"{counted(len(missing), 'run')} {'are' if len(missing) > 1 else 'is'} missing"] if missing else []
    if blocks := len({outcome.block.block for outcome in late}):
        were = "were" if blocks > 1 else "was"
        why.append(f"{counted(blocks, 'block')} {were} not begun, because the budget left no time")
    if why:
        block_s = _block_s(inputs)
        price = format_seconds(sum(block_s[place] for place, _ in _blocks_of([*missing, *late])))
        yield NextStep(_typed(inputs, "bench", "--campaign"), f"{'; '.join(why)}: about {price}")


def _blocks_of(runs: Sequence[RunResult]) -> set[tuple[Place, int]]:
    return {(outcome.job.place, outcome.block.block) for outcome in runs}


def _more_blocks(inputs: JudgedCampaign, rest: Sequence[RunResult]) -> Iterator[NextStep]:
    """Blocks that are needed beside the ``rest`` of those that were planned; the same command runs the rest first."""
    block_s, places = _block_s(inputs), [place for place, _ in _blocks_of(rest)]
    coming: Counter[object] = Counter(places)
    rest_s = sum(block_s[place] for place in places)
    names = cell_names([verdict.key for verdict in inputs.verdicts])
    several = len({verdict.candidate for verdict in inputs.verdicts}) > 1
    wanting = [
        (further, f"{name} ({verdict.candidate})" if several else name, verdict)
        for verdict, name in zip(inputs.verdicts, names, strict=True)
        if verdict.more_blocks and (further := verdict.more_blocks - coming[_place(verdict)]) > 0
    ]
    counts = sorted({count for count, _, _ in wanting if count <= _MOST_BLOCKS})
    for count in dict.fromkeys([*counts[:1], *counts[-1:]]):
        decided = [(name, verdict) for more, name, verdict in wanting if more <= count]
        price = format_seconds(rest_s + count * sum(block_s.values()))
        verb = "may decide" if any("may" in labels.more(verdict) for _, verdict in decided) else "would decide"
        cells = [name for name, _ in decided]
        what = "everything that is undecided" if len(cells) == _undecided(inputs.verdicts) > 3 else labels.listed(cells)
        step = f"{_typed(inputs, 'bench', '--campaign')} --blocks +{count}"
        yield NextStep(step, f"about {price}, {verb} {what}")
    hopeless = [name for count, name, _ in wanting if count > _MOST_BLOCKS]
    hopeless += [
        name
        for verdict, name in zip(inputs.verdicts, names, strict=True)
        if verdict.verdict == "inconclusive" and not verdict.more_blocks and verdict.reason.startswith("wide")
    ]
    if hopeless:
        margin = f"±{inputs.settings.margin.percent}"
        which = labels.listed(dict.fromkeys(hopeless))
        yield NextStep(
            "",
            f"For {which} the noise is too large: more than {_MOST_BLOCKS} further blocks would be needed. "
            f"A quieter machine, more repetitions or a margin above {margin} help more.",
        )


def _place(verdict: Verdict) -> tuple[object, object]:
    return verdict.key["nodes"], verdict.key["workers_per_node"]


def _undecided(verdicts: Sequence[Verdict]) -> int:
    return sum(verdict.verdict == "inconclusive" for verdict in verdicts)


def _causes(inputs: JudgedCampaign) -> Iterator[NextStep]:
    differing = [
        verdict
        for verdict in inputs.verdicts
        if verdict.verdict in ("regression", "improvement", "broken") or verdict.leaning
    ]
    for baseline, candidate in list(dict.fromkeys((verdict.baseline, verdict.candidate) for verdict in differing))[:2]:
        yield NextStep(
            _typed(inputs, "diff", baseline, candidate),
            f"what differs between {baseline} and {candidate} that may be the cause",
        )


def _search(inputs: JudgedCampaign) -> Iterator[NextStep]:
    """Of the largest regression: the searches for the release from which it is there, the setting and the package."""
    try:
        question = largest_regression(inputs)
    except UsageError:
        return
    workload, settings = question.workload, SearchSettings()
    if question.steps_of_versions > 1:
        runs = 2 * settings.least + further_runs(question.steps_of_versions + 1, settings)
        why = f"from which version on {workload} is slower: {_price_alone(inputs, workload, runs)}"
        yield NextStep(f"{_typed(inputs, 'bisect')} --over versions", why)
    if question.ends[0] != question.ends[1]:
        runs = (2 + 3) * settings.least + 4 * settings.least_in_last
        price = f"{_price_alone(inputs, workload, runs)}, or more"
        why = f"whether a setting makes {workload} slower: {price}"
        yield NextStep(f"{_typed(inputs, 'bisect')} --over settings", why)
        first, last = (ImageSpec.parse(parse_variant(end).ucx) for end in question.ends)
        if (first.stack, first.packages) != (last.stack, last.packages):
            why = f"whether a package makes {workload} slower: {price}"
            yield NextStep(f"{_typed(inputs, 'bisect')} --over packages", why)


def _price_alone(inputs: JudgedCampaign, workload: str, runs: int) -> str:
    """What so many runs of one workload take, by the campaign's blocks without the repetitions of the others."""
    marked = {item.params_id: item.warmup for item in inputs.plan.workloads}
    others: dict[str, float] = {}
    for cell in inputs.results.runs:
        key = dict(cell.key)
        if key["workload"] != workload and cell.wall_s:
            repeated = len(cell.wall_s) + marked.get(key["params_id"], 0)
            others[cell.run] = others.get(cell.run, 0.0) + repeated * statistics.fmean(cell.wall_s)
    of_others_s = statistics.median(others.values()) if others else 0.0
    (block_s,) = _block_s(inputs).values()  # a search has one place
    run_s = max(block_s / len(inputs.plan.variants) - of_others_s, 0.0)
    return f"about {runs} runs of it alone, {format_seconds(runs * run_s)}"
