"""One command at a time works on a campaign, or on a search."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from gpubench.errors import UsageError
from gpubench.files import locked
from gpubench.render.shell import command_line
from gpubench.store.campaign import Campaign


@contextlib.contextmanager
def campaign_lock(directory: Path) -> Iterator[None]:
    """Lock the campaign for planning and running; raises UsageError if there is none, or it is locked."""
    Campaign.open(directory)
    with directory_lock(directory, f"check it: {command_line(['gpubench', 'status', str(directory)])}"):
        yield


@contextlib.contextmanager
def directory_lock(directory: Path, instead: str) -> Iterator[None]:
    """Lock a directory; raises UsageError, with what to do ``instead`` of waiting, if it is locked."""
    try:
        with locked(directory, wait=False):
            yield
    except BlockingIOError:
        raise UsageError(
            f"another gpubench is at work on {directory}", then=f"wait until it ends, or {instead}"
        ) from None
