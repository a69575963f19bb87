"""Which job of the scheduler a job directory belongs to: ``submitted.json``, written before and after the submit."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from pathlib import Path

from gpubench.errors import DataError
from gpubench.files import write_atomically

FILE = "submitted.json"


@dataclasses.dataclass(frozen=True)
class Submitted:
    """``job_id`` is empty when the front end died between the submit and its answer; then ``name`` finds the job."""

    scheduler: str
    name: str
    job_id: str
    at: str


def read(job_dir: Path) -> Submitted | None:
    """None where nothing has been submitted from here.

    Raises:
        DataError: the file can't be read.
    """
    path = job_dir / FILE
    try:
        return Submitted(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        raise DataError(f"{path} can't be read", then=f"if no such job waits or runs, remove {path}") from None


def write(job_dir: Path, scheduler: str, name: str, job_id: str = "") -> None:
    """Remember the job; without an id, that one is about to be submitted."""
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    entry = Submitted(scheduler, name, job_id, now)
    write_atomically(job_dir / FILE, json.dumps(dataclasses.asdict(entry), indent=1) + "\n")


def forget(job_dir: Path) -> None:
    """Nothing was submitted after all."""
    (job_dir / FILE).unlink(missing_ok=True)
