"""The page of a campaign, an import, two sides or a history, and its charts, as files."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from gpubench import resources
from gpubench.files import write_atomically
from gpubench.report.answer import VerdictAnswer
from gpubench.report.campaign_page import campaign_page
from gpubench.report.contents import import_answer, import_cautions
from gpubench.report.other_pages import import_page
from gpubench.report.page import Page, html, markdown
from gpubench.report.svg import images
from gpubench.results.changes import Searching, find
from gpubench.results.history import history
from gpubench.results.importers.directory import ImportedResults
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.results.loading import results_of
from gpubench.store.campaign import Campaign

Search = Callable[[], AbstractContextManager[Searching]]
"""Shows the search for changes while it lasts."""


def write_campaign_page(campaign: Campaign, judged: JudgedCampaign) -> Page:
    """``report.html`` and ``report.md`` into the campaign's directory; the page."""
    page = campaign_page(judged)
    write_page(page, campaign.report, campaign.summary)
    return page


def page_of_import(kept: ImportedResults, searching: Search) -> tuple[Page, VerdictAnswer | None]:
    """The page, and its verdicts; one version alone has none, and yet a history."""
    results = results_of(kept)
    source = history(results)
    verdicts = import_answer(results)
    cautions = verdicts.section.notes if verdicts else list(import_cautions(results, ()))
    with searching() as progress:
        changes = find(source.figures, progress)
    return import_page(kept.note, verdicts, source, changes, cautions), verdicts


def write_page(page: Page, path: Path, summary: Path | None = None) -> None:
    """Write the page. With a ``summary``, the same in Markdown: both are of the directory that they lie in."""
    write_atomically(path, html(page, resources.texts("templates")), parents=summary is None)
    if summary is not None:
        write_atomically(summary, markdown(page), parents=False)


def write_charts(page: Page, directory: Path) -> int:
    """Every chart of the page into the directory, which is made where there is none; how many; other files there stay.

    Raises:
        MissingToolError: it can't be written.
    """
    count = 0
    for name, content in images(page.charts(), resources.texts("templates")):
        write_atomically(directory / name, content)
        count += 1
    return count
