"""What a search among points has found."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

from gpubench.campaign.bisection import Search, binding_notes, way_notes
from gpubench.campaign.bisection_differences import DifferenceSpace
from gpubench.campaign.bisection_points import PointList
from gpubench.model.text import counted
from gpubench.report import labels
from gpubench.report.bisection_differences import DifferenceResult
from gpubench.report.bisection_page import Outcome, bench_command
from gpubench.report.charts.bisection import SHAPES, along_list
from gpubench.report.estimates import bounds, figures, no_figure, ratio, with_interval
from gpubench.report.sections import (
    Chart,
    ColumnStyle,
    Heading,
    Medium,
    RichText,
    Section,
    SectionPart,
    TextSpan,
    TextTable,
)
from gpubench.stats.bisection import (
    NAMED_LEVEL,
    Begin,
    Confirmation,
    Estimate,
    Extend,
    PointClass,
    SearchAnswer,
    Step,
    difference,
)
from gpubench.stats.setting_search import SettingAnswer

SCHEMA = "gpubench/bisection/1"
COLUMNS = (
    Heading("point", ColumnStyle.SHORT),
    Heading("class", medium=Medium.PRINTED),
    Heading("class", f"{ColumnStyle.SHORT} alone", Medium.PAGE),
    *(Heading(word, ColumnStyle.NUMBER) for word in ("against the first", "interval", "blocks")),
)
_MARKS = {
    "end": ("●", "strong"),
    "like the fast end": ("▼", "improvement"),
    "like the slow end": ("▲", "regression"),
    "between the ends": ("◆", "inconclusive"),
    "beyond the ends": ("✚", "broken"),
    "undecided": ("■", "quiet"),
}
PROMISE = "Searches like this one name a wrong change in at most 5 of 100."


@dataclasses.dataclass(frozen=True)
class SearchResult(Outcome[PointList, SearchAnswer]):
    """A search among points that has ended."""

    @property
    def labels(self) -> Sequence[str]:
        """What the points are called."""
        return self.space.labels

    def against_first(self, point: int) -> Estimate | None:
        """The difference of a point and the first one, over all blocks that have both."""
        return difference(self.blocks, 0, point, NAMED_LEVEL)

    def class_of(self, point: int) -> str:
        """In words; ``not measured`` where the search didn't need it."""
        ends = {0: "first end", len(self.labels) - 1: "last end"}
        return ends.get(point) or str(self.answer.classes.get(point, "not measured"))

    def sentences(self) -> list[str]:
        answer = self.answer
        if answer.word != "named":
            return [sentence(self), *self._not_searched()]
        main = next(change for change in answer.changes if change.low == answer.low)
        sentences = [sentence(self), *self._skipped(main)]
        for change in answer.changes:
            if change.is_shown and change is not main:
                sentences += [f"It also {self.became(change)}.", *self._skipped(change)]
            elif not change.is_shown:
                pair = f"{self.labels[change.low]} and {self.labels[change.high]}"
                sentences.append(
                    f"{pair} looked different too; fresh blocks don't show it: {with_interval(change.effect)}."
                )
        return [*sentences, *self._not_searched(), PROMISE]

    def became(self, change: Confirmation) -> str:
        """``became slower between a and b: +12.3 % [+9, +15] in 5 blocks of their own``."""
        word = "slower" if change.effect.mean > 0 else "faster"
        blocks = counted(change.effect.blocks, "block")
        where = f"between {self.labels[change.low]} and {self.labels[change.high]}"
        return f"became {word} {where}: {with_interval(change.effect)} in {blocks} of their own"

    def _skipped(self, change: Confirmation) -> list[str]:
        if not change.skipped:
            return []
        names = labels.listed(f"{self.labels[point]} ({self.class_of(point)})" for point in change.skipped)
        return [
            f"Between them, without a class: {names}.",
            f"The change is at one of them, or at {self.labels[change.high]}.",
        ]

    def _not_searched(self) -> list[str]:
        sentences = [
            f"Not searched: {self.labels[low]} to {self.labels[high]}, which differ too."
            for low, high in self.answer.others
        ]
        if isinstance(self.space.next_move(self.steps, self.search.settings), Begin | Extend):
            sentences.append(f"To go on: {self.search.again}")
        return sentences

    def notes(self) -> list[str]:
        """What the neighbours say of themselves, how UCX sends in them, and what the binding sets at one alone."""
        pairs = [(change.low, change.high) for change in self.answer.shown]
        named = [point for pair in pairs for point in pair]
        subjects = [f"{self.space.label(at)}: {self.space.subject(at)}" for at in named if self.space.subject(at)]
        ways = way_notes(self.search, [(self.space.label(low), self.space.label(high)) for low, high in pairs])
        return [*subjects, *ways, *binding_notes(self.search, self.answer)]

    def measured(self) -> list[Section]:
        """The picture, and a row for each point that was measured."""
        table = TextTable(COLUMNS, [self._row(point) for point in self.seen], "All points", "sortable cards")
        rows = self._pictured()
        charts = []
        if any(row["effect"] for row in rows):
            margin = self.search.settings.margin
            title = f"{self.search.workload}: points of the search, against {self.labels[0]}"
            draw = functools.partial(along_list, rows, self._changes(rows), margin, self.labels[0], title)
            caption: list[str | TextSpan] = [
                f"Dot and line: time against {self.labels[0]} over all blocks, and its 95 % interval (arrow: it goes "
                f"on). Grey: {margin.ends}, the margin. ",
                "Red stripe: a change, measured in blocks of its own. " if self.answer.shown else "",
            ]
            classes = {row["class"] for row in rows}
            caption += [
                part for word in [*SHAPES, str(PointClass.FAILED)] if word in classes for part in (_mark(word), " ")
            ]
            charts = [Chart("points", f"search {self.search.workload}", draw, caption)]
        parts = [SectionPart(charts=charts, medium=Medium.PAGE), SectionPart(table=table)]
        return [Section(parts, title="All points", anchor="measured")]

    def left_out(self) -> list[str]:
        """Points that couldn't be built, and how many weren't needed."""
        lines = [f"{label} was not built: {reason}" for label, reason in self.search.unbuilt.items()]
        if more := len(self.labels) - len(self.seen):
            lines.append(
                f"{counted(more, 'point')} {'were' if more > 1 else 'was'} not measured: the search didn't need to"
            )
        return lines

    def command(self) -> str:
        """That measures the neighbours of the changes again; empty where there are none."""
        answer = self.answer
        pairs = answer.shown or (answer.changes if answer.word == "not confirmed" else ())
        points = sorted({point for change in pairs for point in (change.low, change.high)})
        return bench_command(self.search, [*map(self.space.variant, points)]) if points else ""

    def plain(self) -> dict[str, Any]:
        answer = self.answer
        unbuilt = [f"{label} was not built: {reason}" for label, reason in self.search.unbuilt.items()]
        return {
            "schema": SCHEMA,
            "workload": self.search.workload,
            "answer": answer.word,
            "low": self.labels[answer.low],
            "high": self.labels[answer.high],
            "effect": figures(answer.effect),
            "changes": [
                {
                    "low": self.labels[change.low],
                    "high": self.labels[change.high],
                    "effect": figures(change.effect),
                    "skipped": [self.labels[point] for point in change.skipped],
                    "shown": change.is_shown,
                }
                for change in answer.changes
            ],
            "not_searched": [[self.labels[low], self.labels[high]] for low, high in answer.others],
            "notes": [*self.notes(), *unbuilt],
            "margin": float(self.search.settings.margin),
            "points": [
                {"label": label, "class": self.class_of(point), "against_first": figures(self.against_first(point))}
                for point, label in enumerate(self.labels)
            ],
            "steps": len(self.steps),
            "runs": self.runs,
            "command": self.command() or None,
        }

    def _row(self, point: int) -> list[RichText]:
        estimate = self.against_first(point) if point else None
        word = self.class_of(point)
        measured = ["", "", ""]
        if estimate:
            measured = [labels.percent(ratio(estimate.mean)), labels.between(*bounds(estimate)), str(estimate.blocks)]
        return [self.labels[point], word, _mark(word), *measured]

    def _pictured(self) -> list[dict[str, Any]]:
        """Rows of the picture, in percent."""
        rows = []
        for before, point in zip([-1, *self.seen], self.seen, strict=False):
            estimate = self.against_first(point) if point else Estimate(0.0, -math.inf, math.inf, 0)
            values = (ratio(estimate.mean), *bounds(estimate)) if estimate else (None, None, None)
            percents = [None if value is None else round(100 * value, 2) for value in values]
            row = {"label": self.labels[point], "class": _look(self.class_of(point)), "left_out": point - before - 1}
            rows.append({**row, **dict(zip(("effect", "low", "high"), percents, strict=True))})
        return rows

    def _changes(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Between which rows the changes lie that fresh blocks showed."""
        row_of = {row["label"]: at for at, row in enumerate(rows)}
        return [
            {
                "low": row_of[self.labels[change.low]],
                "high": row_of[self.labels[change.high]],
                "text": with_interval(change.effect),
            }
            for change in self.answer.shown
        ]


def result_of(
    search: Search, steps: Sequence[Step], answer: SearchAnswer | SettingAnswer
) -> "SearchResult | DifferenceResult":
    """Of a search that has ended."""
    match search.space, answer:
        case PointList() as space, SearchAnswer():
            return SearchResult(search, space, steps, answer)
        case DifferenceSpace() as space, SettingAnswer():
            return DifferenceResult(search, space, steps, answer)
    raise TypeError(f"{search.directory}: an answer of another search")


def _look(word: str) -> str:
    return "end" if word in ("first end", "last end") else word


def _mark(word: str) -> TextSpan:
    """A class in its colour, with its sign."""
    sign, style = _MARKS.get(_look(word), ("✕", "quiet"))
    return TextSpan(f"{sign} {'ends' if word == 'end' else word}", f"verdict {style}")


def sentence(result: SearchResult) -> str:
    """``merge became slower between a and b: …``, or why no change is named."""
    answer, last = result.answer, result.labels[-1]
    low, high = result.labels[answer.low], result.labels[answer.high]
    workload = result.search.workload
    if answer.word == "named":
        (main,) = (change for change in answer.changes if change.low == answer.low)
        return f"{workload} {result.became(main)}."
    between = f"{workload}, {low} to {high}"
    effect = with_interval(answer.effect)
    blocks = counted(answer.effect.blocks, "block")
    ends = {0: result.labels[0], len(result.labels) - 1: last}
    way = "rises" if answer.effect.mean > 0 else "falls"
    return {
        "not confirmed": f"{between}: not confirmed: {effect} in {blocks} of their own; no change is named.",
        "gradual": f"{between}: the figure {way} gradually, at no single point by more than the margin.",
        "no effect": f"{between}: no effect beyond the margin: {effect} (at 90 %) in {blocks}; nothing to search.",
        "gone": f"{between}: the effect is gone: {effect} (at 90 %) in {blocks} of the last step.",
        "undecided": f"{between}: undecided: {effect} in {blocks}; more blocks would be needed even for the ends.",
        "failed": f"{between}: no answer: {no_figure(result.steps, ends)}",
    }[answer.word]
