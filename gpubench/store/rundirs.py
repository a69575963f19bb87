"""Run directories (``runs/<run>-<attempt>/``), the record in each, and what writers and runs that were killed left."""

import dataclasses
import datetime as dt
import operator
import os
import re
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic_core

from gpubench.errors import DataError
from gpubench.files import discard_dead, reading
from gpubench.node.spec import RUN_STATUSES, RunRecord, WorkloadRecord
from gpubench.node.spec.plain import SpecError, from_plain, parse_json
from gpubench.node.spec.records import PROVENANCE_FILE, RUN_FILE, RUN_RECORD

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
    source = f"{path}/{RUN_FILE}"  # joining Paths takes longer than reading a file
    try:
        with reading(source):
            plain = _parsed(read_bytes(source))
    except FileNotFoundError:
        return None
    except ValueError:
        raise DataError(f"{source} is cut off or not JSON") from None
    if not isinstance(plain, dict) or plain.get("schema") != RUN_RECORD:
        raise DataError(f"{source} is not a {RUN_RECORD}", then="use the gpubench that wrote it")
    try:
        plain["workloads"] = [_built(WorkloadRecord, item, source) for item in plain.get("workloads", [])]
        record = _built(RunRecord, plain, source)
    except (SpecError, TypeError) as error:
        raise DataError(f"{source}: {error}") from None
    for status in (record.status, *(workload.status for workload in record.workloads)):
        if status not in RUN_STATUSES:
            raise DataError(f"{source}: status '{status}' is none of {', '.join(RUN_STATUSES)}")
    return record


class Records:
    """Records that have been read: whoever looks at a campaign several times reads each of them once.

    A record is written last of all and never changes: what was found once stays true, what wasn't is looked for again.
    """

    def __init__(self) -> None:
        self._records: dict[Path, RunRecord] = {}

    def read(self, path: Path) -> RunRecord | None:
        """As ``read_record``."""
        record = self._records.get(path) or read_record(path)
        if record is not None:
            self._records[path] = record
        return record


def read_provenance(path: Path) -> Mapping[str, Any]:
    """``provenance.json`` of the run directory ``path``; empty where it is missing or damaged.

    A hole in it mustn't stop a report: the page says *not recorded*, and what isn't recorded hasn't changed.
    """
    try:
        plain = _parsed(read_bytes(f"{path}/{PROVENANCE_FILE}"))
    except (OSError, ValueError):
        return {}
    return plain if isinstance(plain, dict) else {}


def read_bytes(path: Path | str) -> bytes:
    """All of a file, in half of the time of ``Path.read_bytes``: ten thousand runs have thirty thousand files."""
    with open(path, "rb", buffering=0) as handle:  # noqa: PTH123 - as above
        return handle.readall()


def _parsed(data: bytes) -> Any:
    """As ``parse_json``, in half of its time; what is odd goes there, which alone judges it."""
    try:
        return pydantic_core.from_json(data)
    except ValueError:
        return parse_json(data)


_BEYOND = 2**31
"""Blocks, nodes and the like: the merged table's columns are this narrow."""


_Record = typing.TypeVar("_Record", RunRecord, WorkloadRecord)
_Shape = tuple[type, tuple[str, ...], tuple[type, ...]]
_known_shapes: set[_Shape] = set()
"""Names and types of the values of records that were found right; those of all runs of a campaign are the same few."""
_MOST_SHAPES = 1000


def _built(kind: type[_Record], plain: Any, source: str) -> _Record:
    """As ``from_plain``, with text that is text and lists that are lists, which what comes after relies on."""
    if not isinstance(plain, dict):
        return from_plain(kind, plain)
    shape = (kind, tuple(plain), tuple(map(type, plain.values())))
    if shape in _known_shapes and len(plain) == _FIELDS[kind]:
        record = object.__new__(kind)
        record.__dict__ = plain  # as kind(**plain), which takes longer than to parse the text
    elif shape in _known_shapes:
        record = kind(**plain)
    else:
        record = from_plain(kind, plain)
        for name, expected in _KINDS[kind]:
            value = getattr(record, name)
            if not isinstance(value, expected):
                raise DataError(f"{source}: {name} = {value!r} is not {expected.__name__}")
        if len(_known_shapes) < _MOST_SHAPES:
            _known_shapes.add(shape)
    numbers = _NUMBERS[kind]
    if not 0 <= min(counts := numbers(record)) <= max(counts) < _BEYOND:
        name, value = next((n, v) for n, v in vars(record).items() if type(v) is int and not 0 <= v < _BEYOND)
        raise DataError(f"{source}: {name} = {value} is no number that gpubench writes there")
    return record


def _kinds(of: type) -> list[tuple[str, type]]:
    kinds = [(name, typing.get_origin(hint) or hint) for name, hint in typing.get_type_hints(of).items()]
    return [(name, kind) for name, kind in kinds if isinstance(kind, type)]


_FIELDS = {of: len(dataclasses.fields(of)) for of in (RunRecord, WorkloadRecord)}
_KINDS = {of: _kinds(of) for of in (RunRecord, WorkloadRecord)}
"""The class of every field that has one; resolved once, since that takes longer than reading a record."""
_NUMBERS = {of: operator.attrgetter(*(name for name, kind in kinds if kind is int)) for of, kinds in _KINDS.items()}


_TEMPORARY = re.compile(r"\..+\.(tmp|[a-z0-9_]{8})|\.rendezvous-.+")


def is_temporary(name: str) -> bool:
    """Whether it is what the tool or the node half writes in passing: ``.run.json.x1y2z3_8``."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_leftovers(directory: Path) -> None:
    """Remove temporary files and meeting points below ``directory``, of which no job may live; those in use stay."""
    for folder, _, names in os.walk(directory):
        for name in filter(is_temporary, names):
            discard_dead(Path(folder) / name)
