"""An import as a result set.

Two campaigns or imports side by side: which variants, which question, and what differs besides.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from gpubench import resources
from gpubench.cli.campaign.display import show_verdicts, write_page
from gpubench.cli.results.options import Content
from gpubench.cli.results.result_sets import OneSide, VerdictAnswer
from gpubench.cli.say import say, warn
from gpubench.errors import DataError, UsageError
from gpubench.history import coverage, observed, sides
from gpubench.history.sides import SideCell, match
from gpubench.importers import pairing
from gpubench.importers.directory import ImportedResults
from gpubench.importers.pairing import default_baseline, family, points, reworded
from gpubench.model.base import nearest
from gpubench.model.known_issue import load_known_issues
from gpubench.model.text import counted
from gpubench.report.history import HistorySource, Told
from gpubench.report.inputs import Seconds, seconds
from gpubench.report.page import Page
from gpubench.report.sections import Section
from gpubench.report.sides import UNPAIRED, Side, SideBySide, judge_sides
from gpubench.report.verdicts import verdict_section
from gpubench.stats.question import Question
from gpubench.stats.settings import Summary, VerdictSettings
from gpubench.stats.verdict import Verdict, judge


class ImportResults(OneSide):
    """Results of another tool, maybe packed: dates in place of blocks."""

    kind = "import"
    cannot: ClassVar[Mapping[str, str]] = {
        "allow": "an import doesn't record its environment",
        "metric": "an import has only seconds",
        "summary": "an import is judged by the mean of a date",
    }

    def __init__(self, found: ImportedResults) -> None:
        self.found, self.place, self.name = found, found.place, found.name
        self.variants = sides.variants_of_import(found.table)
        self.caution = str(found.note["caution"] or "")

    def answer(self, question: Question) -> VerdictAnswer:
        """Of the whole family against one version."""
        verdicts, both, settings = self._judged(question)
        shown = [one for one in verdicts if question.candidate in (None, one.candidate)]
        both = [pair for one, pair in zip(verdicts, both, strict=True) if question.candidate in (None, one.candidate)]
        if not shown:
            there = sorted({one.candidate for one in verdicts})
            raise UsageError(
                f"no variant '{question.candidate}' beside the baseline", then=f"there are {', '.join(there)}"
            )

        def document() -> str:
            from gpubench.report.page import markdown

            return markdown(self._page()[0])

        section = verdict_section(self.name, shown, settings, both, notes=list(self._cautions()))
        return VerdictAnswer(shown, section, both, document=document if question == Question() else None)

    def _judged(self, question: Question) -> tuple[list[Verdict], list[Seconds], VerdictSettings]:
        settings, table = question.settings(), self.found.table
        comparisons = family(table, question.baseline or default_baseline(points(table), table))
        if not comparisons:
            raise DataError(
                f"{self.place} has no cell with two versions, so there is nothing to compare",
                then="import the files of another version too, or name another --baseline",
            )
        verdicts = list(reworded(judge(comparisons, settings), comparisons))
        return verdicts, seconds(comparisons, verdicts, settings.summary), settings

    def _cautions(self) -> Iterator[str]:
        """What pairs by date can show and what they can't."""
        table = self.found.table
        if table["date"].null_count() == table.height:
            yield (
                "no blocks and no dates are recorded, so no verdict is possible; import with --date if you know the day"
            )
            return
        yield (
            "imported: a 'block' is a date on which both versions were measured. That takes out what differs between "
            "days; it can't take out what goes with the version within a day"
        )
        if self.caution:
            yield self.caution
        if (table["reps"] != 1).any():
            yield "a date's figure is one mean of many repetitions: stragglers and noise within a run can't be seen"

    def section(self, content: Content, question: Question, workload: str | None) -> Section:
        """Any but links and runs."""
        if content in (Content.LINKS, Content.RUNS):
            raise UsageError(
                f"{self.place} is an import: this needs runs and links, which it doesn't have",
                then="name a campaign",
            )
        if content is not Content.SCALING:
            return super().section(content, question, workload)
        from gpubench.report.scaling import imported_scaling_section

        curves = pairing.curves(self.found.table)
        if not curves:
            raise DataError(
                f"{self.place}: the source recorded no number of workers", then="there is nothing to scale by"
            )
        return imported_scaling_section(self.name, curves)

    def write_page(self, _question: Question, _path: Path | None) -> Page:
        """``report.html`` and ``report.md``: verdicts, change points, charts over dates, what is missing."""
        page, verdicts, both = self._page()
        show_verdicts(verdicts, seconds=both)
        write_page(page, self.found.derived("report.html"), self.found.derived("report.md"))
        say(f"report: {self.found.derived('report.html')}")
        return page

    def _page(self) -> tuple[Page, list[Verdict], list[Seconds]]:
        from gpubench.cli.results.trend import searched
        from gpubench.report.other_pages import import_page
        from gpubench.report.plots import effect_plot

        told = self.told()
        try:
            verdicts, both, settings = self._judged(Question())
        except DataError as error:  # one version alone has a history too
            warn(str(error))
            verdicts, both, settings = [], [], VerdictSettings()
        section = verdict_section(self.name, verdicts, settings, both) if verdicts else None
        series, cautions = searched(told.figures), list(self._cautions())
        page = import_page(
            self.found.note,
            section,
            observed=told.figures,
            missing=told.missing,
            series=series,
            source=told.source,
            cautions=cautions,
        )
        page = dataclasses.replace(page, plots=lambda width: [effect_plot(verdicts, settings.margin, width)])
        return page, verdicts, both

    def told(self) -> Told:
        """All of its dates; rules that come with gpubench may explain what is missing."""
        note = self.found.note
        figures = list(observed.of_import(self.name, points(self.found.table), note["documents"]))
        issues = resources.root() / "issues" / "known.toml"
        missing = coverage.gaps_of_import(
            figures, load_known_issues(issues.read_text(encoding="utf-8"), "issues/known.toml")
        )
        dates = sorted({str(one.date) for one in figures})
        span = f"{counted(len(dates), 'date')}, {dates[0]} to {dates[-1]}" if dates else "no dates"
        versions = ", ".join(sorted({one.variant for one in figures}))
        about = f"{note['format']}, {span}, versions {versions}; each sign is a date, # measured, . not"
        source = HistorySource(self.kind, self.name, about, dates, coverage.of_import(figures, missing))
        return Told(source, figures, missing)

    def side_cells(self, variant: str, summary: Summary) -> list[SideCell]:
        """Of rows of known size."""
        return sides.of_import(self.found.table, variant, summary)


_MOST = 8


def side_by_side(first: OneSide, second: OneSide, question: Question) -> SideBySide:
    """Match and judge one variant of each.

    Raises:
        UsageError: it isn't clear which variants are meant, or one isn't there; the two were planned with different
            questions, and none was named.
        DataError: the sides have no cell in common.
    """
    chosen = _variants(first.variants, second.variants, question.baseline, question.candidate)
    return _side_by_side((first, second), [chosen], question)[0]


def every_side_by_side(first: OneSide, second: OneSide, question: Question) -> list[SideBySide]:
    """As ``side_by_side``; where no variant is named, each one that both have, all in one family."""
    common = [label for label in first.variants if label in second.variants]
    if question.baseline or question.candidate or len(common) < 2:
        return [side_by_side(first, second, question)]
    return _side_by_side((first, second), [(label, label) for label in common], question)


def _side_by_side(
    both: tuple[OneSide, OneSide], chosen: Sequence[tuple[str, str]], question: Question
) -> list[SideBySide]:
    """Of those pairs of variants that have a cell in common."""
    first, second = both
    settings = question.settings(*(one.plan for one in both if one.plan))
    found = []
    for variants in chosen:
        side_a, side_b = (
            Side(letter, one.kind, one.name, variant, one.side_cells(variant, settings.summary))
            for letter, one, variant in zip("AB", both, variants, strict=True)
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
    return [dataclasses.replace(one, notes=_notes(one, both)) for one in shown]


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
