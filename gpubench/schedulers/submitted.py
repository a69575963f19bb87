"""Which job of a scheduler a job directory stands for: ``submitted.json``, written before and after the submit."""

import contextlib
import dataclasses
import datetime as dt
import json
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpubench.errors import DataError
from gpubench.files import write_atomically
from gpubench.schedulers.state import current_user, declaration

FILE = "submitted.json"
_UNPLAIN = re.compile(r"[^\w.+@-]", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Submitted:
    """A job as it was submitted. Later commands ask for this job only, whatever the shell and the machine say.

    Args:
        scheduler: the adapter's name.
        name: of the job; in a queue, with a word of its own behind it, so that no two submits have the same.
        job_id: empty when the front end died between the submit and its answer; then the queue is asked.
        cluster: Slurm's or LSF's cluster, PBS' server, or the address of Kubernetes' API server; empty where it wasn't
            known.
        directory: from which it was submitted, absolute; empty for one that was not.
        user: who submitted it.
        uid: the same as a number.
        at: when, in UTC.
        here: the script was started inside the allocation ``job_id``, which is older and lives longer than it.
        after: names of the jobs that must have ended before it is handed over.
        files: numbers of jobs whose files lay in the directory before.
        warning: what the submit's client said beside its answer.
        declared_ended: time and user of the statement that it has ended, where its scheduler can't tell; else None.
        earlier: what stood in the file before, oldest first.
    """

    scheduler: str
    name: str
    job_id: str = ""
    cluster: str = ""
    directory: str = ""
    user: str = ""
    uid: int = -1
    at: str = ""
    here: bool = False
    after: list[str] = dataclasses.field(default_factory=list)
    files: list[str] = dataclasses.field(default_factory=list)
    warning: str = ""
    declared_ended: dict[str, str] | None = None
    earlier: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def age_s(self) -> float:
        """Seconds since the submit; infinite where that isn't known."""
        if not self.at:
            return math.inf
        return (dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(self.at)).total_seconds()

    @property
    def place(self) -> str:
        """`` on cluster NAME``; empty where none is known, or where the id says it."""
        return f" on cluster {self.cluster}" if self.cluster and not self.job_id.endswith(f".{self.cluster}") else ""


def read(job_dir: Path) -> Submitted | None:
    """None where nothing has been submitted from here. Raises DataError: the file can't be read."""
    path = job_dir / FILE
    with contextlib.suppress(OSError):
        os.scandir(job_dir).close()  # an NFS client then drops what it believes of the file
    try:
        return Submitted(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        raise DataError(f"{path} can't be read", then=f"if no such job waits or runs, remove {path}") from None


def write(
    job_dir: Path,
    scheduler: str,
    name: str,
    job_id: str = "",
    *,
    cluster: str = "",
    here: bool = False,
    after: Sequence[str] = (),
    files: Sequence[str] = (),
) -> Submitted:
    """Remember a new job; without an id, that one is about to be submitted. What stood there before is kept in it."""
    before = read(job_dir)
    earlier = [*before.earlier, {**dataclasses.asdict(before), "earlier": []}] if before else []
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    directory = "" if here else str(job_dir.resolve())
    user, uid = current_user(), os.getuid()
    entry = Submitted(
        *(scheduler, name, job_id, cluster, directory, user, uid, now, here),
        after=list(after),
        files=list(files),
        earlier=earlier,
    )
    keep(job_dir, entry)
    return entry


def keep(job_dir: Path, entry: Submitted) -> None:
    """Write down what has become known of the job: its id, its cluster, or that somebody declares it ended."""
    write_atomically(job_dir / FILE, json.dumps(dataclasses.asdict(entry), indent=1) + "\n")


def declare_ended(job_dir: Path) -> None:
    entry = read(job_dir)
    if entry is not None:
        keep(job_dir, dataclasses.replace(entry, declared_ended=declaration()))


def restore(job_dir: Path, before: Submitted | None) -> None:
    """Nothing was submitted: restore the entry that was there before."""
    if before is None:
        (job_dir / FILE).unlink(missing_ok=True)
    else:
        keep(job_dir, before)


def job_name(job_dir: Path) -> str:
    """``<campaign>-<job>`` for people who look at the queue; what a shell or a table may misread becomes ``_``."""
    return _UNPLAIN.sub("_", f"{job_dir.resolve().parents[1].name}-{job_dir.name}")
