"""Results over time: what was measured when, and where figures changed."""

import logging
from collections.abc import Callable, Sequence

from gpubench import resources
from gpubench.model.known_issue import load_known_issues
from gpubench.report.history import changes_section, coverage_section, trend_section
from gpubench.report.section_names import Content
from gpubench.report.sections import Section
from gpubench.results.changes import Series, find
from gpubench.results.coverage import ResultHistory, history
from gpubench.results.figures import Figure
from gpubench.results.results import Results

_log = logging.getLogger(__name__)

SEED = 20260101
"""Of the permutations: the same history shows the same changes."""
Searching = Callable[[int, int], None]
"""Is told how many series have been searched, and how many there are."""


def nobody(_done: int, _all: int) -> None:
    """Shows nothing."""


def history_of(results: Results) -> ResultHistory:
    """What the results add to a history; issues that come with gpubench may explain what is missing."""
    issues = resources.root() / "issues" / "known.toml"
    return history(results, load_known_issues(issues.read_text(encoding="utf-8"), "issues/known.toml"))


def search(figures: Sequence[Figure], searching: Searching = nobody) -> list[Series]:
    """Every series with its changes; a long history takes a while."""
    return find(figures, SEED, searching)


def section_over_time(sources: Sequence[ResultHistory], only: str | None, searching: Searching = nobody) -> Section:
    """``coverage`` or ``changes``, or both."""
    if only == Content.COVERAGE:
        return coverage_section(sources)
    figures = [figure for source in sources for figure in source.figures]
    if not figures:
        _log.warning("no figure has a date and a version, so there is no history to search")
    series = search(figures, searching)
    return changes_section(series) if only == Content.CHANGES else trend_section(sources, series)
