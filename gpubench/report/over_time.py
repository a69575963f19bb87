"""Results over time: where figures changed."""

import logging
from collections.abc import Callable, Sequence

from gpubench.report.history import trend_section
from gpubench.report.sections import Section
from gpubench.results.changes import Series, find
from gpubench.results.figures import Figure
from gpubench.results.history import ResultHistory

_log = logging.getLogger(__name__)

SEED = 20260101
"""Of the permutations: the same history shows the same changes."""
Searching = Callable[[int, int], None]
"""Is told how many series have been searched, and how many there are."""


def nobody(_done: int, _all: int) -> None:
    """Shows nothing."""


def search(figures: Sequence[Figure], searching: Searching = nobody) -> list[Series]:
    """Every series with its changes; a long history takes a while."""
    return find(figures, SEED, searching)


def trend_of(sources: Sequence[ResultHistory], searching: Searching) -> Section:
    """Where figures changed, below a line for each source."""
    figures = [figure for source in sources for figure in source.figures]
    if not figures:
        _log.warning("no figure has a date and a version, so there is no history to search")
    return trend_section(sources, search(figures, searching))
