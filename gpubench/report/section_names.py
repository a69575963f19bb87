"""Sections by the names that a user types."""

from enum import StrEnum


class Content(StrEnum):
    """What can be shown of results."""

    SCALING = "scaling"
    RUNS = "runs"
