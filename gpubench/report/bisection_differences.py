"""What a search among settings or packages has found."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.campaign.bisection import way_notes
from gpubench.campaign.bisection_differences import SHORT_LABELS, Difference, DifferenceSpace
from gpubench.model.text import counted
from gpubench.model.variant import parse_variant
from gpubench.report import labels
from gpubench.report.bisection_page import Outcome, bench_command
from gpubench.report.charts.bisection import restored
from gpubench.report.estimates import bounds, figures, no_figure, ratio, with_interval
from gpubench.report.sections import Chart, ColumnStyle, Heading, Medium, Section, SectionPart, TextTable
from gpubench.stats.bisection import NAMED_LEVEL, SAME_LEVEL, Estimate, difference
from gpubench.stats.ratio import ratio_of_means
from gpubench.stats.setting_search import FIRST, LAST, MOST_TESTED, SettingAnswer, end_of, point_of, settings_of

SCHEMA = "gpubench/bisection/1"
PROMISE = "Searches like this one name a {} that doesn't matter in at most 5 of 100."


@dataclasses.dataclass(frozen=True)
class DifferenceResult(Outcome[DifferenceSpace, SettingAnswer]):
    """A search among differences that has ended."""

    @property
    def slow(self) -> str:
        """What the slow end is called."""
        return self.space.label(self.answer.slow)

    @property
    def fast(self) -> str:
        """What the fast end is called."""
        return self.space.label(FIRST + LAST - self.answer.slow)

    @property
    def noun(self) -> str:
        """What is searched: setting or package."""
        return self.space.over.removesuffix("s")

    @property
    def rest_of_the_difference(self) -> str:
        """In what the ends differ beside what was found; empty where they are one image, and it is all."""
        if len({parse_variant(point).ucx for point in self.space.points}) > 1:
            return f"the code of {self.slow}"
        is_all = len(self.answer.chosen) == len(self.space.searched)
        return "" if is_all else f"the other {self.space.over} of {self.slow}"

    def sentences(self) -> list[str]:
        answer, sentences = self.answer, [self._sentence()]
        if answer.word == "named":
            if answer.share is not None and answer.share.low is not None and answer.share.high is not None:
                low, high = (100 * bound for bound in (answer.share.low, answer.share.high))
                blocks = f"{counted(answer.effect.blocks, 'block')} of their own"
                sentences.append(
                    f"That is {100 * answer.share.value:.0f} % [{low:.0f}, {high:.0f}] of the difference, in {blocks}."
                )
            sentences.append(PROMISE.format(self.noun))
        ends = [point for point in (FIRST, LAST) if self.space.label(point) in SHORT_LABELS]
        return [*sentences, *(f"{self.space.label(point)}: {self._typed(point)}" for point in ends)]

    def notes(self) -> list[str]:
        """How UCX sends, where the ends differ in that."""
        return way_notes(self.search, [(self.fast, self.slow)]) if self.answer.chosen else []

    def measured(self) -> list[Section]:
        """The shares that were restored, and a row for each difference."""
        if not self.space.searched:
            return []
        columns: list[Heading | str] = [
            Heading("", ColumnStyle.SHORT, label="number"),
            Heading(self.noun, f"{ColumnStyle.SHORT} alone"),
            *(Heading(end, ColumnStyle.SHORT) for end in (self.fast, self.slow)),
            Heading("class", ColumnStyle.SHORT),
            "reverted",
            *(Heading(word, ColumnStyle.NUMBER) for word in (f"against {self.slow}", "interval", "blocks")),
        ]
        table = TextTable(columns, list(self._rows()), f"All {self.space.over} that were searched", "sortable cards")
        shares = list(self._shares())
        effect = abs(self.answer.effect.mean)
        margin = 100 * self.search.settings.margin.log / effect if effect else 100.0
        draw = functools.partial(
            restored, shares, margin, f"{self.search.workload}: what reverting restores on {self.slow}"
        )
        caption = (
            f"Dot and line: share (of logs) that reverting on {self.slow} restores, and its 95 % interval, over all "
            "blocks of the search; the answer is of its last blocks alone. Red: named. Arrow: it goes on. "
            f"Band: the margin, ±{self.search.settings.margin.percent}, as a share. Dashed: all of it."
        )
        charts = [Chart("restored", f"restored {self.search.workload}", draw, caption)] if shares else []
        return [
            Section(
                [SectionPart(charts=charts, medium=Medium.PAGE), SectionPart(table=table)],
                title=f"All {self.space.over}",
                anchor="measured",
            )
        ]

    def left_out(self) -> list[str]:
        """What was not searched, with reasons, and groups without a figure."""
        names: dict[str, list[str]] = {}
        for name, reason in self._left_out():
            names.setdefault(reason, []).append(name)
        lines = [f"Not searched, {reason}: {', '.join(names[reason])}" for reason in names]
        if unknown := self._unknown():
            lines.append(f"Unknown, because no run of it counts: {', '.join(unknown)}")
        return [*lines, *(f"{label} was not built: {reason}" for label, reason in self.search.unbuilt.items())]

    def plain(self) -> dict[str, Any]:
        """As JSON: effects are ratios minus one, the share is a ratio of logs."""
        answer = self.answer
        return {
            "schema": SCHEMA,
            "over": self.space.over,
            "workload": self.search.workload,
            "answer": answer.word,
            "fast": self.fast,
            "slow": self.slow,
            "ends": {self.space.label(point): self._typed(point) for point in (FIRST, LAST)},
            "named": [name for at in answer.chosen for name in self.space.searched[at].names]
            if answer.word == "named"
            else [],
            "effect": figures(answer.effect),
            "gain": figures(answer.gain),
            "rest": figures(answer.rest),
            "applied": figures(answer.applied),
            "share": dataclasses.asdict(answer.share) if answer.share else None,
            "margin": float(self.search.settings.margin),
            self.space.over: [
                {
                    "name": item.name,
                    "fast": None if item.origin == "new" else self._value(item, fast=True),
                    "slow": self._value(item, fast=False),
                    "origin": item.origin,
                    "moves_with_it": [name for name, _ in item.with_it],
                    "class": self._class(at),
                }
                for at, item in enumerate(self.space.searched)
            ],
            "unknown": self._unknown(),
            "unbuilt": dict(self.search.unbuilt),
            "notes": self.notes(),
            "not_searched": [{"name": name, "reason": reason} for name, reason in self._left_out()],
            "steps": len(self.steps),
            "runs": self.runs,
            "command": self.command() or None,
        }

    def command(self) -> str:
        """That measures the ends, and each with what was found as on the other side; empty where nothing was."""
        answer = self.answer
        if not answer.chosen:
            return ""
        points = next(step.points for step in reversed(self.steps) if {FIRST, LAST} <= {*step.points})
        if {settings_of(point) for point in points} != {frozenset(), frozenset(answer.chosen)}:
            points = (FIRST, LAST, point_of(answer.slow, answer.chosen))
        return bench_command(self.search, [self.space.variant(point) for point in points])

    def _typed(self, end: int) -> str:
        """An end without its label."""
        variant = parse_variant(self.space.points[end])
        return ",".join([variant.ucx, *(f"{name}={value}" for name, value in variant.env.items())])

    def _sentence(self) -> str:
        answer = self.answer
        start = f"{self.search.workload} is {with_interval(answer.effect)} slower in {self.slow} than in {self.fast}."
        if answer.word == "named":
            rest = f"{with_interval(answer.rest)} against {self.fast}" if answer.rest else "an unknown time"
            return f"{start} With {self._words(answer.chosen, fast=True)}, {self.slow} takes {rest}; {self._cause()}."
        blocks = counted(answer.effect.blocks, "block")
        between = f"{self.search.workload}, {self.fast} to {self.slow}"
        effect, chosen = with_interval(answer.effect), self._words(answer.chosen, fast=True)
        gain = f"{with_interval(answer.gain)} in {counted(answer.gain.blocks, 'block')}" if answer.gain else ""
        reverted = (
            f"all {self.space.over} reverted restore {gain}" if gain else f"no {self.noun} was reverted with a figure"
        )
        return {
            "none of them": f"{start} {self._none_of_them()}",
            "several": f"{start} More than three {self.space.over} restore it together: {chosen}.",
            "not narrowed": f"{start} No smallest group of {self.space.over} was left after {MOST_TESTED} tries.",
            "not confirmed": f"{start} Not confirmed in {blocks} of its own: {chosen}; no {self.noun} is named.",
            "no effect": f"{between}: no effect beyond the margin: {effect} (at 90 %) in {blocks}; nothing to search.",
            "gone": f"{between}: the effect is gone: {effect} (at 90 %) in {blocks} of the last step with both ends.",
            "restored no more": f"{start} All {self.space.over} reverted restored it at first, then no more: {gain}.",
            "undecided": f"{between}: undecided: {effect} in {blocks}; {reverted}.",
            "failed": f"{between}: no answer: {no_figure(self.steps, dict(enumerate(self.space.labels)))}",
        }[answer.word]

    def _cause(self) -> str:
        """What the fast end with the settings of the slow one says of the cause."""
        answer = self.answer
        values = self._words(answer.chosen, fast=False)
        it = f"the {self.noun}" if len(answer.chosen) == 1 else f"the {self.space.over} together"
        rest = self.rest_of_the_difference
        code = f"it is {it} with {rest}" if rest else f"it is {it}"
        unfit = [at for at in answer.chosen if not self.space.searched[at].applicable]
        if unfit:
            return f"{self.fast} can't be given {self._words(unfit, fast=False)}: {code}"
        if answer.applied is None:
            return f"{self.fast} with {values} gave no figure: {code}"
        if answer.makes_no_difference:
            return f"on {self.fast}, {values} makes no difference: {code}"
        applied = f"on {self.fast}, {values} takes {with_interval(answer.applied)}"
        margin = self.search.settings.margin
        if margin.is_slower(answer.applied.low):
            part = f", and maybe a part of it with {rest}" if rest and not answer.is_same_on_both else ""
            return f"{applied}: it is {it}{part}"
        is_open = rest and margin.is_slower(answer.applied.high)
        unshown = f"; more blocks would show whether {rest} must be there" if is_open else ""
        return f"{applied}: {code}{unshown}"

    def _none_of_them(self) -> str:
        reverted = len(self.space.searched) - len(self.answer.excluded)
        if not reverted:
            return f"No {self.noun} in which they differ can be reverted."
        which = f"the one {self.noun}" if reverted == 1 else f"the {reverted} {self.space.over}"
        every = [at for at in range(len(self.space.searched)) if at not in self.answer.excluded]
        rest = difference(self.blocks, point_of(self.answer.slow, every), self.answer.slow, SAME_LEVEL)
        effect = f" {self.slow} takes {with_interval(rest)} (at 90 %) against itself with that." if rest else ""
        return f"It is none of {which} that could be reverted: reverting all restores less than the margin.{effect}"

    def _words(self, chosen: Sequence[int], *, fast: bool) -> str:
        end = FIRST + LAST - self.answer.slow if fast else self.answer.slow
        values = {name: value for at in chosen for name, value in self.space.searched[at].assignments(end).items()}
        sign = "==" if self.space.over == "packages" else "="
        return labels.listed(
            f"{name}{sign}{value}" if value is not None else f"{name} unset" for name, value in values.items()
        )

    def _value(self, item: Difference, *, fast: bool) -> str | None:
        return item.values[FIRST + LAST - self.answer.slow if fast else self.answer.slow]

    def _class(self, at: int) -> str:
        answer = self.answer
        if at in answer.excluded and answer.word != "no effect":
            return "unknown: no figure"
        if at in answer.chosen:
            return answer.word if answer.word in ("named", "not confirmed") else "restores, with others"
        if answer.word == "none of them":
            return "restores less than the margin"
        return "not needed" if answer.chosen else "undecided"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for at, item in enumerate(self.space.searched):
            values = (self._value(item, fast=True), self._value(item, fast=False))
            point, estimate = self._smallest(at)
            measured: tuple[str, ...] = (self.space.label(point).rpartition(":")[2] if point else "",)
            if estimate is not None:
                measured += (
                    labels.percent(ratio(estimate.mean)),
                    labels.between(*bounds(estimate)),
                    str(estimate.blocks),
                )
            values = ("none", values[1]) if item.origin == "new" else values
            cells = ("unset" if value is None else value or "empty" for value in values)
            yield (
                str(at + 1),
                " + ".join(item.names),
                *cells,
                self._class(at),
                *measured,
                *[""] * (4 - len(measured)),
            )

    def _smallest(self, at: int) -> tuple[int, Estimate | None]:
        """The smallest subset with this setting that was measured on the slow side, and what reverting it did."""
        points = {point for point in self.seen if end_of(point) == self.answer.slow}
        estimates = {point: difference(self.blocks, self.answer.slow, point, NAMED_LEVEL) for point in points}
        with_it = [point for point in points if at in settings_of(point)]
        point = min(with_it, key=lambda each: (estimates[each] is None, len(settings_of(each)), each), default=0)
        return point, estimates.get(point) if point else None

    def _shares(self) -> Iterator[dict[str, Any]]:
        """What each group restored, of the difference of the ends and of what all together restored."""
        answer, slow = self.answer, self.answer.slow
        every = [at for at in range(len(self.space.searched)) if at not in answer.excluded]
        whole = point_of(slow, every)
        seen = (point for point in self.seen if end_of(point) == slow and point != slow)
        points = sorted(seen, key=lambda point: (-len(settings_of(point)), point))
        of_all = f"of what all {len(every)} restore"
        for title, end in ((f"of the difference from {self.fast}", FIRST + LAST - slow), (of_all, whole)):
            for point in (point for point in points if point != end):
                both = [block for block in self.blocks if {slow, end, point} <= block.keys()]
                gains, wholes = ([block[slow] - block[each] for block in both] for each in (point, end))
                if share := ratio_of_means(gains, wholes, NAMED_LEVEL):
                    values = (share.value, share.low, share.high)
                    percents = [None if value is None else round(100 * value, 2) for value in values]
                    yield {
                        "whole": f"Share {title}",
                        "name": self._group(point, every),
                        **dict(zip(("share", "low", "high"), percents, strict=True)),
                        "named": answer.word == "named" and settings_of(point) == {*answer.chosen},
                    }

    def _group(self, point: int, every: Sequence[int]) -> str:
        group = sorted(settings_of(point))
        if len(group) == len(every) > 1:
            return f"all {len(every)} {self.space.over}"
        names = [" + ".join(self.space.searched[at].names) for at in group]
        return (
            names[0] if len(names) == 1 else f"{self.space.label(point).rpartition(':')[2]}: {labels.listed(names, 1)}"
        )

    def _unknown(self) -> list[str]:
        """Points without a figure in any block."""
        return sorted(
            self.space.label(point) for point in self.seen if not any(point in block for block in self.blocks)
        )

    def _left_out(self) -> Sequence[tuple[str, str]]:
        return self.space.differences.left_out if self.space.differences else ()
