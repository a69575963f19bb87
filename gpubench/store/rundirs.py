"""Run directories (``runs/<run>-<attempt>/``), the record in each, and what writers and runs that were killed left."""

import dataclasses
import datetime as dt
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubench.errors import DataError
from gpubench.files import discard_dead, reading
from gpubench.node.spec import RunRecord, WorkloadRecord
from gpubench.node.spec.plain import SpecError, from_plain, parse_json
from gpubench.node.spec.records import PROVENANCE_FILE, RUN_FILE, RUN_RECORD, SAMPLES_FILE

_EMPTY = hashlib.sha256().hexdigest()
_NAME = re.compile(r"(?P<run>.+)-(?P<attempt>[1-9]\d*)")


@dataclasses.dataclass(frozen=True, order=True)
class RunDirectory:
    """One attempt at one run. Whether it has a record is a question for ``read_record``."""

    run: str
    attempt: int
    path: Path


def run_directories(runs: Path) -> list[RunDirectory]:
    """Every run directory below ``runs``, by run and attempt; other names are left alone."""
    with reading(runs):
        if not runs.exists():
            return []
        with os.scandir(runs) as entries:
            named = [(entry.name, _NAME.fullmatch(entry.name)) for entry in entries if entry.is_dir()]
    return sorted(RunDirectory(match["run"], int(match["attempt"]), runs / name) for name, match in named if match)


def record_seconds(record: RunRecord) -> float:
    """From a run's start to its record, without the time in which others had their turns."""
    ended, started = (dt.datetime.fromisoformat(stamp) for stamp in (record.ended_at, record.started_at))
    return (ended - started).total_seconds() - record.phases.get("waited", 0.0)


def read_record(path: Path) -> RunRecord | None:
    """``run.json`` of the run directory ``path``, None without one; raises DataError for a damaged one."""
    source = path / RUN_FILE
    try:
        with reading(source):
            plain = parse_json(source.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise DataError(f"{source} is cut off or not JSON") from None
    if not isinstance(plain, dict) or plain.get("schema") != RUN_RECORD:
        raise DataError(f"{source} is not a {RUN_RECORD}", then="use the gpubench that wrote it")
    try:
        plain["workloads"] = [from_plain(WorkloadRecord, item) for item in plain.get("workloads", [])]
        return from_plain(RunRecord, plain)
    except (SpecError, TypeError) as error:
        raise DataError(f"{source}: {error}") from None


class Records:
    """Records that have been read: whoever looks at a campaign several times reads each of them once.

    A record is written last of all and never changes: what was found once stays true, what wasn't is looked for again.
    """

    def __init__(self) -> None:
        self._records: dict[Path, RunRecord] = {}

    def read(self, path: Path) -> RunRecord | None:
        """As ``read_record``; raises DataError also where the samples beside it aren't those that the run wrote, or
        its provenance is gone.
        """
        if path in self._records:
            return self._records[path]
        record = read_record(path)
        if record is None:
            return None
        then = "restore it from a copy, or let gpubench bench --campaign replace the run's block"
        samples = read_samples_file(path)
        if hashlib.sha256(samples).hexdigest() != record.files.get(SAMPLES_FILE, _EMPTY):
            changed = "isn't what the run wrote: its record has another hash"
            raise DataError(
                f"runs/{path.name}/{SAMPLES_FILE} {changed if samples else 'is gone, or empty: the run wrote samples'}",
                then=then,
            )
        if PROVENANCE_FILE in record.files and not (path / PROVENANCE_FILE).exists():
            raise DataError(f"runs/{path.name}/{PROVENANCE_FILE} is gone: nothing proves the run", then=then)
        self._records[path] = record
        return record


def read_samples_file(path: Path) -> bytes:
    """``samples.jsonl`` of the run directory ``path``, empty if the run wrote none."""
    source = path / SAMPLES_FILE
    with reading(source):
        try:
            return source.read_bytes()
        except FileNotFoundError:
            return b""


def read_provenance(path: Path) -> Mapping[str, Any]:
    """``provenance.json`` of the run directory ``path``; empty where it is missing or damaged.

    A hole in it mustn't stop a report: the page says *not recorded*, and what isn't recorded hasn't changed.
    """
    try:
        plain = parse_json((path / PROVENANCE_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return plain if isinstance(plain, dict) else {}


_TEMPORARY = re.compile(r"\..+\.(tmp|[a-z0-9_]{8})|\.rendezvous-.+")


def is_temporary(name: str) -> bool:
    """Whether it is what the tool or the node half writes in passing: ``.run.json.x1y2z3_8``."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_leftovers(directory: Path) -> None:
    """Remove temporary files and meeting points below ``directory``, of which no job may live; those in use stay."""
    for folder, _, names in os.walk(directory):
        for name in filter(is_temporary, names):
            discard_dead(Path(folder) / name)
