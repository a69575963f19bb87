"""``gpubench trend``: results of campaigns and imports over time."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import rich.progress

from gpubench import resources
from gpubench.cli.display import write_page
from gpubench.cli.results.options import TrendContent, TrendOptions
from gpubench.cli.results.show import show_section, write_images
from gpubench.cli.say import say, warn
from gpubench.cli.terminal import Terminal
from gpubench.errors import UsageError
from gpubench.model.known_issue import load_known_issues
from gpubench.report.history import by_machine, changes_section, coverage_section, trend_section
from gpubench.report.sections import Section
from gpubench.results.changes import Series, find
from gpubench.results.coverage import ResultHistory, history
from gpubench.results.figures import Figure
from gpubench.results.loading import load_all
from gpubench.results.results import Results

SEED = 20260101
"""Of the permutations: the same history shows the same changes."""


def show_trend(directories: Sequence[Path], asked: TrendOptions) -> None:
    """Print what was measured when and where it changed, or write the page; raises UsageError."""
    draws = asked.html or asked.svg or asked.png
    if (asked.only or asked.as_json) and draws:
        raise UsageError("--only and --json print, --html, --svg and --png write files", then="choose one")
    sources = by_machine([history_of(results) for results in load_all(directories)])
    if draws:
        _draw(sources, asked)
    else:
        show_section(section_over_time(sources, asked.only), "json" if asked.as_json else "lines")


def history_of(results: Results) -> ResultHistory:
    """What the results add to a history; issues that come with gpubench may explain what is missing."""
    issues = resources.root() / "issues" / "known.toml"
    return history(results, load_known_issues(issues.read_text(encoding="utf-8"), "issues/known.toml"))


def section_over_time(sources: Sequence[ResultHistory], only: str | None) -> Section:
    """``coverage`` or ``changes``, or both."""
    if only == TrendContent.COVERAGE:
        return coverage_section(sources)
    figures = [figure for one in sources for figure in one.figures]
    if not figures:
        warn("no figure has a date and a version, so there is no history to search")
    series = searched(figures)
    return changes_section(series) if only == TrendContent.CHANGES else trend_section(sources, series)


def searched(figures: Sequence[Figure]) -> list[Series]:
    """Every series with its changes; long histories take a while, which a terminal shows."""
    with _search_bar() as searching:
        return find(figures, SEED, searching)


@contextlib.contextmanager
def _search_bar() -> Iterator[Callable[[int, int], None]]:
    """A callback for the number of series searched so far, and of all; on a terminal it shows a bar."""
    if not sys.stdout.isatty():
        yield lambda _done, _all: None
        return
    with rich.progress.Progress(console=Terminal(), transient=True) as progress:
        task = progress.add_task("series searched for changes", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _draw(sources: Sequence[ResultHistory], asked: TrendOptions) -> None:
    from gpubench.report.other_pages import trend_page

    page = trend_page(sources, searched([figure for one in sources for figure in one.figures]))
    if asked.html:
        write_page(page, asked.html)
        say(f"page: {asked.html}")
    write_images(page, {"svg": asked.svg, "png": asked.png})
