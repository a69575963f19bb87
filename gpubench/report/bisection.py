"""What a search among points has found: a sentence, a table, and the same as plain values."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.campaign.bisection import Search, binding_notes
from gpubench.campaign.bisection_differences import DifferenceSpace
from gpubench.campaign.bisection_points import PointList
from gpubench.model.text import counted
from gpubench.report import labels
from gpubench.report.bisection_differences import DifferenceResult
from gpubench.report.estimates import bounds, figures, no_figure, ratio, with_interval
from gpubench.report.sections import TextTable, table_lines
from gpubench.stats.bisection import NAMED_LEVEL, Estimate, SearchAnswer, SearchSettings, Step, difference
from gpubench.stats.setting_search import SettingAnswer

SCHEMA = "gpubench/bisection/1"
COLUMNS = ("point", "class", "against the first", "interval", "blocks")
PROMISE = "Searches like this one name a wrong change in at most 5 of 100."


@dataclasses.dataclass(frozen=True)
class SearchResult:
    """A search that has ended: what its points are called, its steps and its answer."""

    workload: str
    labels: Sequence[str]
    steps: Sequence[Step]
    answer: SearchAnswer
    settings: SearchSettings
    notes: Sequence[str] = ()

    @property
    def runs(self) -> int:
        """How many runs were measured."""
        return sum(len(step.points) * len(step.blocks) for step in self.steps)

    def against_first(self, point: int) -> Estimate | None:
        """The difference of a point and the first one, over all blocks that have both."""
        return difference((block for step in self.steps for block in step.blocks), 0, point, NAMED_LEVEL)

    def class_of(self, point: int) -> str:
        """In words; ``not measured`` where the search didn't need it."""
        ends = {0: "first end", len(self.labels) - 1: "last end"}
        return ends.get(point) or str(self.answer.classes.get(point, "not measured"))

    def lines(self) -> Iterator[str]:
        """As ``answer_lines``."""
        return answer_lines(self)

    def plain(self) -> dict[str, Any]:
        """As ``plain``."""
        return plain(self)


def result_of(
    search: Search, steps: Sequence[Step], answer: SearchAnswer | SettingAnswer
) -> "SearchResult | DifferenceResult":
    """Of a search that has ended."""
    match search.space, answer:
        case PointList() as space, SearchAnswer():
            unbuilt = [f"{label} was not built: {reason}" for label, reason in search.unbuilt.items()]
            named = (answer.low, answer.high) if answer.word == "named" else ()
            subjects = [f"{space.label(at)}: {space.subject(at)}" for at in named if space.subject(at)]
            notes = [*subjects, *binding_notes(search, answer), *unbuilt]
            return SearchResult(search.workload, space.labels, steps, answer, search.settings, notes)
        case DifferenceSpace(), SettingAnswer():
            return DifferenceResult(search, search.space, steps, answer)
    raise TypeError(f"{search.directory}: an answer of another search")


def answer_lines(result: SearchResult) -> Iterator[str]:
    """The sentence, what it rests on, and a row for each point that was measured."""
    yield sentence(result)
    if result.answer.skipped:
        names = labels.listed(f"{result.labels[point]} ({result.class_of(point)})" for point in result.answer.skipped)
        yield f"Between them, without a class: {names}."
        yield f"The change is at one of them, or at {result.labels[result.answer.high]}."
    for low, high in result.answer.others:
        yield f"Not searched: {result.labels[low]} to {result.labels[high]}, which differ too."
    yield from (f"note: {note}" for note in result.notes)
    if result.answer.word == "named":
        yield PROMISE
    yield ""
    yield from table_lines(TextTable(COLUMNS, list(_rows(result))))
    cost = f"{counted(len(result.steps), 'step')}, {counted(result.runs, 'run')}"
    yield f"{cost}; margin ±{result.settings.margin.percent}"


def sentence(result: SearchResult) -> str:
    """``merge became +12.3 % [+9, +15] slower between a and b.``, or why no change is named."""
    answer, last = result.answer, result.labels[-1]
    low, high = result.labels[answer.low], result.labels[answer.high]
    between = f"{result.workload}, {low} to {high}"
    effect = with_interval(answer.effect)
    blocks = counted(answer.effect.blocks, "block")
    ends = {0: result.labels[0], len(result.labels) - 1: last}
    if answer.word == "named":
        word = "slower" if answer.effect.mean > 0 else "faster"
        return f"{result.workload} became {word} between {low} and {high}: {effect} in {blocks} of their own."
    return {
        "not confirmed": f"{between}: not confirmed: {effect} in {blocks} of their own; no change is named.",
        "gradual": f"{between}: the figure rises gradually, at no single point by more than the margin.",
        "no effect": f"{between}: no effect beyond the margin: {effect} in {blocks}; there is nothing to search.",
        "gone": f"{between}: the effect is gone: {effect} in {blocks} of the last step; {last} is no slower now.",
        "undecided": f"{between}: undecided: {effect} in {blocks}; more blocks would be needed even for the ends.",
        "failed": f"{between}: no answer: {no_figure(result.steps, ends)}",
    }[answer.word]


def plain(result: SearchResult) -> dict[str, Any]:
    """As JSON: effects are ratios minus one."""
    answer = result.answer
    return {
        "schema": SCHEMA,
        "workload": result.workload,
        "answer": answer.word,
        "low": result.labels[answer.low],
        "high": result.labels[answer.high],
        "effect": figures(answer.effect),
        "skipped": [result.labels[point] for point in answer.skipped],
        "not_searched": [[result.labels[low], result.labels[high]] for low, high in answer.others],
        "notes": list(result.notes),
        "margin": float(result.settings.margin),
        "points": [
            {"label": label, "class": result.class_of(point), "against_first": figures(result.against_first(point))}
            for point, label in enumerate(result.labels)
        ],
        "steps": len(result.steps),
        "runs": result.runs,
    }


def _rows(result: SearchResult) -> Iterator[tuple[str, ...]]:
    measured = {point for step in result.steps for point in step.points}
    for point, label in enumerate(result.labels):
        estimate = result.against_first(point) if point else None
        if point in measured and estimate:
            effect, interval = labels.percent(ratio(estimate.mean)), labels.between(*bounds(estimate))
            yield label, result.class_of(point), effect, interval, str(estimate.blocks)
        elif point in measured:
            yield label, result.class_of(point), "", "", ""
