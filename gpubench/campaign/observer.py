"""Who wants to see the progress of jobs while a call of the library runs or watches them."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from gpubench.store.campaign import Campaign


class Observer:
    """Is told of every event; this one does nothing."""

    def look(self) -> None:
        """Time to look at the run directories; called several times a second."""

    def waiting(self, holder: str) -> None:
        """Another job, of this holder, has the machine."""

    def limited(self, seconds: float) -> None:
        """A job begins, and no block of it may end later than in so many seconds."""

    def log(self, line: str) -> None:
        """A line that deserves to stay."""


class Observe(Protocol):
    def __call__(self, campaign: Campaign, /, *, joining: bool = False) -> AbstractContextManager[Observer]:
        """``joining``: jobs of the campaign may be running already."""


@contextlib.contextmanager
def unobserved(_campaign: Campaign, /, *, joining: bool = False) -> Iterator[Observer]:  # noqa: ARG001
    yield Observer()
