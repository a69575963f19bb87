"""Write the page of a campaign, of an import, or of two sides."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from gpubench.cli.display import show_verdicts, write_page, write_report
from gpubench.cli.results.answers import answer, import_cautions
from gpubench.cli.results.judge import judge_campaign
from gpubench.cli.results.trend import history_of, searched
from gpubench.cli.say import say, warn
from gpubench.errors import DataError
from gpubench.importers.directory import ImportedResults
from gpubench.report import other_pages
from gpubench.report.answer import VerdictAnswer
from gpubench.report.page import Page
from gpubench.results.curves import curves
from gpubench.results.loading import results_of
from gpubench.results.results import Results
from gpubench.stats.question import Question
from gpubench.store.campaign import Campaign


def write_campaign(campaign: Campaign, question: Question) -> Page:
    """``report.html`` and ``report.md`` into its directory, or beside its pack."""
    judged = judge_campaign(campaign, question)
    show_verdicts(judged.verdicts, judged.accounting, judged.seconds)
    page = write_report(campaign, judged)
    return page if campaign.pack is None else dataclasses.replace(page, steps=())


def write_import(kept: ImportedResults) -> Page:
    """``report.html`` and ``report.md``: verdicts, change points, charts over dates, what is missing."""
    page, found = import_page(kept)
    show_verdicts(found.verdicts if found else [], seconds=found.seconds if found else [])
    write_page(page, kept.derived("report.html"), kept.derived("report.md"))
    say(f"report: {kept.derived('report.html')}")
    return page


def import_page(kept: ImportedResults) -> tuple[Page, VerdictAnswer | None]:
    """The page, and its verdicts; one version alone has none, and yet a history."""
    results = results_of(kept)
    source = history_of(results)
    try:
        found = answer(results, Question())
    except DataError as error:
        warn(str(error))
        found = None
    cautions = found.section.notes if found else list(import_cautions(results, ()))
    page = other_pages.import_page(kept.note, found, source, searched(source.figures), cautions)
    return page, found


def write_sides(sides: Results, question: Question, path: Path) -> Page:
    """One page with both curves of every workload."""
    found = answer(sides, question)
    page = other_pages.sides_page(sides, found, curves(sides, found.settings.summary))
    show_verdicts(found.verdicts, seconds=found.seconds)
    for note in found.section.notes:
        say(f"note: {note}")
    write_page(page, path)
    say(f"page: {path}")
    return page
