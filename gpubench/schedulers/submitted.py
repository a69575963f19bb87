"""Which job of the scheduler a job directory belongs to: ``submitted.json``, written before and after the submit."""

import dataclasses
import datetime as dt
import json
import re
from collections.abc import Sequence
from pathlib import Path

from gpubench.errors import DataError
from gpubench.files import write_atomically

FILE = "submitted.json"
_UNPLAIN = re.compile(r"[^\w.+@-]", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Submitted:
    """``job_id`` is empty when the front end died between the submit and its answer; then the queue is asked.

    ``after`` are the jobs that must have ended before it is handed over.
    ``here``: the script was started inside the allocation ``job_id``, which is older and lives longer than it.
    """

    scheduler: str
    name: str
    job_id: str
    at: str
    here: bool = False
    after: list[str] = dataclasses.field(default_factory=list)


def read(job_dir: Path) -> Submitted | None:
    """None where nothing has been submitted from here. Raises DataError: the file can't be read."""
    path = job_dir / FILE
    try:
        return Submitted(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        raise DataError(f"{path} can't be read", then=f"if no such job waits or runs, remove {path}") from None


def write(
    job_dir: Path, scheduler: str, name: str, job_id: str = "", *, here: bool = False, after: Sequence[str] = ()
) -> None:
    """Remember the job; without an id, that one is about to be submitted."""
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    _write(job_dir, Submitted(scheduler, name, job_id, now, here, list(after)))


def restore(job_dir: Path, before: Submitted | None) -> None:
    """Nothing was submitted: restore the entry that was there before."""
    if before is None:
        (job_dir / FILE).unlink(missing_ok=True)
    else:
        _write(job_dir, before)


def job_name(job_dir: Path) -> str:
    """``<campaign>-<job>`` for people who look at the queue; what a shell or a table may misread becomes ``_``."""
    return _UNPLAIN.sub("_", f"{job_dir.resolve().parents[1].name}-{job_dir.name}")


def _write(job_dir: Path, entry: Submitted) -> None:
    write_atomically(job_dir / FILE, json.dumps(dataclasses.asdict(entry), indent=1) + "\n")
