"""One command at a time works on a campaign."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from gpubench.errors import UsageError
from gpubench.files import locked
from gpubench.store.campaign import Campaign


@contextlib.contextmanager
def campaign_lock(directory: Path) -> Iterator[None]:
    """Lock the campaign for planning and running; raises UsageError if there is none, or it is locked."""
    Campaign.open(directory)
    try:
        with locked(directory, wait=False):
            yield
    except BlockingIOError:
        raise UsageError(
            f"another gpubench is at work on {directory}",
            then=f"wait until it ends, or check it: gpubench status {directory}",
        ) from None
