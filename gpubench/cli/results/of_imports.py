"""An import as a result set."""

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
from gpubench.history.sides import SideCell
from gpubench.importers import pairing
from gpubench.importers.directory import ImportedResults
from gpubench.importers.pairing import default_baseline, family, points, reworded
from gpubench.model.known_issue import load_known_issues
from gpubench.model.text import counted
from gpubench.report import labels
from gpubench.report.history import HistorySource
from gpubench.report.inputs import Seconds, seconds
from gpubench.report.page import Page
from gpubench.report.sections import Section
from gpubench.report.verdicts import verdict_section
from gpubench.stats.question import Question
from gpubench.stats.settings import Summary, VerdictSettings
from gpubench.stats.verdict import Verdict, judge


class ImportResults(OneSide):
    """Results of another tool, maybe packed: dates in place of blocks."""

    kind = "import"
    cannot: ClassVar[Mapping[str, str]] = {
        "allow": "an import doesn't record its environment",
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

        section = verdict_section(self.name, shown, settings, both, notes=list(self._cautions(verdicts)))
        return VerdictAnswer(shown, section, both, document=document if question == Question() else None)

    def _judged(self, question: Question) -> tuple[list[Verdict], list[Seconds], VerdictSettings]:
        settings, table = question.settings(), self.found.table
        files = [str(one["file"]) for one in self.found.note["sources"]]
        comparisons = family(table, question.baseline or default_baseline(points(table), table, files))
        if not comparisons:
            raise DataError(
                f"{self.place} has no cell with two versions, so there is nothing to compare",
                then="import the files of another version too, or name another --baseline",
            )
        verdicts = list(reworded(judge(comparisons, settings), comparisons))
        return verdicts, seconds(comparisons, verdicts, settings.summary), settings

    def _cautions(self, verdicts: Sequence[Verdict]) -> Iterator[str]:
        """What pairs by date can show and what they can't, and what isn't compared."""
        table = self.found.table
        if verdicts and (alone := pairing.uncompared(table, verdicts[0].baseline)):
            keys = list(dict.fromkeys(pairing.cell_of(row) for row in table.iter_rows(named=True)))
            names = [
                name
                for key, name in zip(keys, labels.cell_names([dict(key) for key in keys]), strict=True)
                if key in alone
            ]
            yield (
                f"{counted(len(alone), 'cell')} without {verdicts[0].baseline}, or with nothing beside it, "
                f"{'are' if len(alone) > 1 else 'is'} not compared: {labels.listed(names)}"
            )
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
        from gpubench.report.answer import answer
        from gpubench.report.other_pages import import_page
        from gpubench.report.plots import effect_plot

        source = self.history()
        try:
            verdicts, both, settings = self._judged(Question())
        except DataError as error:  # one version alone has a history too
            warn(str(error))
            verdicts, both, settings = [], [], VerdictSettings()
        section = verdict_section(self.name, verdicts, settings, both) if verdicts else None
        series, cautions = searched(source.figures), list(self._cautions(verdicts))
        headline = answer(verdicts, settings) if verdicts else []
        page = import_page(self.found.note, section, source, series, headline=headline, cautions=cautions)
        page = dataclasses.replace(page, plots=lambda width: [effect_plot(verdicts, settings.margin, width)])
        return page, verdicts, both

    def history(self) -> HistorySource:
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
        lines = coverage.of_import(figures, missing)
        return HistorySource(self.kind, self.name, about, dates, lines, figures, missing)

    def side_cells(self, variant: str, summary: Summary) -> list[SideCell]:
        """Of rows of known size."""
        return sides.of_import(self.found.table, variant, summary)
