"""How the supervisors of one run find each other: one small file on the shared file system.

The path contains the run and a hash of the job's token, so it is never used twice. The file is renamed into place and
holds the token. NFS can hide a new file for half a minute and can show an old one, so a reader that finds no file, a
short one, or one with another token reads again, with jitter, until its deadline.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Callable, Dict, Optional

from gpubench.workloads.polling import poll_until
from gpubench.writer.atomic import write_atomic

RENDEZVOUS = "gpubench/rendezvous/1"
POLL_S = 0.05
LONGEST_POLL_S = 1.0


class RendezvousTimeoutError(Exception):
    """Rank 0 didn't show up in time."""


def path_for(runs_dir: Path, run: str, token: str) -> Path:
    """The file of this run in this start of the job. Other users can list file names, so the name holds a hash of the
    token.
    """
    return runs_dir / f".rendezvous-{run}-{hashlib.sha256(token.encode()).hexdigest()[:16]}"


def publish(path: Path, token: str, facts: Dict[str, Any]) -> None:
    """Write rank 0's facts, readable by this user only."""
    body = {"schema": RENDEZVOUS, "token": token, "facts": facts}
    write_atomic(path, json.dumps(body).encode("utf-8"), mode=0o600)


def read(path: Path, token: str) -> Optional[Dict[str, Any]]:
    """The facts; None without a complete file that holds the token."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(body, dict) or body.get("schema") != RENDEZVOUS or body.get("token") != token:
        return None
    facts = body.get("facts")
    return facts if isinstance(facts, dict) else None


def wait(path: Path, token: str, deadline: float, stopped: Callable[[], bool]) -> Dict[str, Any]:
    """Read until the file is there.

    Args:
        deadline: on the ``time.monotonic`` clock.
        stopped: called at every attempt; True ends the wait.

    Raises:
        RendezvousTimeoutError: the deadline has passed, or the wait was stopped.
    """

    def published() -> Optional[Dict[str, Any]]:
        if stopped():
            raise RendezvousTimeoutError("stopped while waiting for rank 0")
        facts = read(path, token)
        if facts is None:
            _refresh(path.parent)
        return facts

    facts = poll_until(published, deadline, POLL_S, longest_s=LONGEST_POLL_S, jitter=True)
    if facts is None:
        raise RendezvousTimeoutError(f"rank 0 did not publish {path} in time")
    return facts


def _refresh(directory: Path) -> None:
    """Listing a directory makes an NFS client drop what it believes about a missing name.

    The directory itself may not be there yet: rank 0 makes it.
    """
    with contextlib.suppress(OSError), os.scandir(str(directory)) as entries:
        next(entries, None)
