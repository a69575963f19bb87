"""Two campaigns or imports side by side: which variants, which question, and what else differs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from gpubench.cli.campaign.display import write_page
from gpubench.cli.results.open_target import root_of
from gpubench.cli.results.options import Content
from gpubench.cli.results.result_sets import OneSide, ResultSet, VerdictAnswer, one_side
from gpubench.cli.say import say
from gpubench.errors import DataError, UsageError
from gpubench.history.sides import match
from gpubench.model.base import nearest
from gpubench.report.sections import Section
from gpubench.report.sides import UNPAIRED, Side, SideBySide, judge_sides, side_seconds, sides_section
from gpubench.report.verdicts import verdict_section
from gpubench.stats.question import Question

if TYPE_CHECKING:
    from gpubench.report.page import Page

_MOST = 8


class TwoResults(ResultSet):
    """Two campaigns or imports: the second against the first, unpaired, cell by cell that both have."""

    cannot: ClassVar[Mapping[str, str]] = {
        "allow": "two targets are compared without a check of their environments",
    }

    def __init__(self, first: Path, second: Path) -> None:
        self.place, self.both = second, (one_side(first), one_side(second))
        self.roots = [root_of(path) for path in (first, second)]
        if self.roots[0].resolve() == self.roots[1].resolve():
            raise UsageError(f"{first} is named twice", then="its own variants are compared by: gpubench compare DIR")

    def _side_by_side(self, question: Question, *, every: bool = False) -> list[SideBySide]:
        """Match and judge one variant of each; with ``every``, where none is named, all that both have as one family.

        Raises:
            UsageError: it isn't clear which variants are meant, or one isn't there; the two were planned with different
                questions, and none was named.
            DataError: the sides have no cell in common.
        """
        first, second = self.both
        common = [(label, label) for label in first.variants if label in second.variants]
        if not every or question.baseline or question.candidate or len(common) < 2:
            common = [_variants(first.variants, second.variants, question.baseline, question.candidate)]
        settings = question.settings(*(one.plan for one in self.both if one.plan))
        found = []
        for variants in common:
            side_a, side_b = (
                Side(letter, one.kind, one.name, variant, one.side_cells(variant, settings.summary))
                for letter, one, variant in zip("AB", self.both, variants, strict=True)
            )
            pairs, lone = match(side_a.cells, side_b.cells)
            found += [(side_a, side_b, pairs, lone)] if pairs else []
        if not found:
            raise DataError(
                f"{first.place} and {second.place} have no cell in common: no workload with the same parameters at the "
                "same size",
                then="gpubench report --only scaling of each shows what they hold",
            )
        judged = judge_sides([(side_a, side_b, pairs) for side_a, side_b, pairs, _ in found], settings)
        shown = [SideBySide(*one, verdicts, [], settings) for one, verdicts in zip(found, judged, strict=True)]
        return [dataclasses.replace(one, notes=_notes(one, self.both)) for one in shown]

    def answer(self, question: Question) -> VerdictAnswer:
        """The verdicts alone, of every variant that both have where none is named."""
        shown = self._side_by_side(question, every=True)
        name = " and ".join(f"{one.second.label} against {one.first.label}" for one in shown)
        verdicts, both = ([*chain(*each)] for each in ((one.verdicts for one in shown), map(side_seconds, shown)))
        notes = list(dict.fromkeys(note for one in shown for note in one.notes))
        section = verdict_section(name, verdicts, shown[0].settings, both, notes=notes)
        return VerdictAnswer(verdicts, section, both)

    def section(self, content: Content, question: Question, workload: str | None) -> Section:
        """Both curves of every workload."""
        if content is not Content.SCALING:
            return super().section(content, question, workload)
        return sides_section(self._side_by_side(question)[0])

    def write_page(self, question: Question, path: Path | None) -> Page:
        """One page with both curves of every workload."""
        from gpubench.cli.results.show import show_section
        from gpubench.report.other_pages import sides_page

        shown = self._side_by_side(question)[0]
        first, second = (root.resolve().name for root in self.roots)
        path, page = path or Path(f"{second}-against-{first}.html"), sides_page(shown)
        write_page(page, path)
        show_section(sides_section(shown), "lines")
        say(f"page: {path}")
        return page


def _variants(
    first: Sequence[str], second: Sequence[str], baseline: str | None, candidate: str | None
) -> tuple[str, str]:
    """Of A and of B: those that are named, else the only one that both have."""
    for name, there, option in ((baseline, first, "--baseline"), (candidate, second, "--candidate")):
        if name is not None and name not in there:
            raise UsageError(
                f"{option}: no variant '{name}'{nearest(name, there)}", then=f"there are {', '.join(there)}"
            )
    common = [label for label in first if label in second]
    if baseline is not None and candidate is not None:
        return baseline, candidate
    named = baseline or candidate
    if named is not None and named in common:
        return named, named
    if named is None and len(common) == 1:
        return common[0], common[0]
    what = f"both have {', '.join(common)}" if common else "no variant is in both"
    raise UsageError(
        f"{what}: A has {', '.join(first)}; B has {', '.join(second)}",
        then="say which: --baseline VARIANT-OF-A --candidate VARIANT-OF-B (one is enough if both have it)",
    )


def _notes(shown: SideBySide, both: Sequence[OneSide]) -> list[str]:
    """Effects that can't be removed, facts that aren't recorded, and what else differs."""
    notes = [UNPAIRED]
    refused = sum(bool(pair.refused) for pair in shown.pairs)
    if refused:
        notes.append(
            f"{refused} of {len(shown.pairs)} cells are refused: differences in layout or device are no effect of "
            "the scheduler"
        )
    unknown = sorted({word for pair in shown.pairs if not pair.refused for word in pair.unknown})
    if unknown:
        notes.append(
            f"layout-unknown: {', '.join(unknown)} not recorded on both sides, so it is unknown whether they are alike"
        )
    protocols = {(pair.first.protocol, pair.second.protocol) for pair in shown.pairs}
    notes += [
        f"protocol: {a or 'not recorded'} against {b or 'not recorded'}"
        for a, b in sorted(protocols, key=str)
        if a != b
    ]
    notes += [one.caution for one in both if one.caution]
    differs = _differs(shown, both)
    if differs:
        more = f" and {len(differs) - _MOST} more" if len(differs) > _MOST else ""
        notes.append(f"also differs between the sides: {', '.join(differs[:_MOST])}{more}")
    return list(dict.fromkeys(notes))


def _differs(shown: SideBySide, both: Sequence[OneSide]) -> list[str]:
    """Circumstances that both recorded, as of the first figure of either."""
    before, after = (
        one.circumstances(side.variant) for one, side in zip(both, (shown.first, shown.second), strict=True)
    )
    if before is None or after is None:
        return []
    fields = [f"{name} {was} → {after[0][name]}" for name, was in before[0].items() if was != after[0][name]]
    return fields + (before[1].changed(after[1]) if before[1] and after[1] else [])
