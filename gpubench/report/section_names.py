"""Sections by the names that a user types."""

from enum import StrEnum


class Content(StrEnum):
    """What can be shown of results."""

    VERDICTS = "verdicts"
    SCALING = "scaling"
    LINKS = "links"
    RUNS = "runs"
    COVERAGE = "coverage"
    CHANGES = "changes"


class TrendContent(StrEnum):
    """What can be shown of a history."""

    COVERAGE = "coverage"
    CHANGES = "changes"
