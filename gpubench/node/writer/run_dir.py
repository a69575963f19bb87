"""One run's directory: claimed once, filled while the run lasts, finished by ``run.json``."""

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set

from gpubench.node.spec.plain import parse_json, to_plain
from gpubench.node.spec.records import (
    HASHED_FILES,
    LINKS_FILE,
    PROVENANCE_FILE,
    RAN,
    RUN_FILE,
    SAMPLES_FILE,
    RunRecord,
)
from gpubench.node.writer.atomic import sync_directory, write_atomic

MOST_ATTEMPTS = 1000


def finished(runs_dir: Path, run: str) -> Optional[Path]:
    """The directory of an attempt of ``run`` that ran to its end (``ok`` or ``failed``), if there is one."""
    for path in _attempts(runs_dir, run):
        if _status(path / RUN_FILE) in RAN:
            return path
    return None


def recorded(runs_dir: Path, run: str) -> Set[int]:
    """Attempts of ``run`` that have a record, whatever it says."""
    return {attempt_of(path) for path in _attempts(runs_dir, run) if (path / RUN_FILE).exists()}


def _attempts(runs_dir: Path, run: str) -> List[Path]:
    """Directories of the run; ``<run>-1.old`` is one that somebody has set aside, and none of it."""
    return [path for path in sorted(runs_dir.glob(f"{run}-*")) if path.name[len(run) + 1 :].isdecimal()]


def _status(record: Path) -> str:
    """``status`` in a run record, empty where there is none or none that can be read."""
    try:
        plain = parse_json(record.read_bytes())
    except (OSError, ValueError):
        return ""
    return str(plain.get("status", "")) if isinstance(plain, dict) else ""


def claim(runs_dir: Path, run: str) -> Path:
    """Make ``<run>-<attempt>`` with the first attempt number that is free; nobody else can have the same.

    Raises:
        OSError: ``runs_dir`` can't be written.
    """
    runs_dir.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, MOST_ATTEMPTS):
        path = runs_dir / f"{run}-{attempt}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        sync_directory(runs_dir)
        return path
    raise OSError(f"run {run} has {MOST_ATTEMPTS} attempts in {runs_dir}")


def attempt_of(path: Path) -> int:
    return int(path.name.rpartition("-")[2])


def append_sample(path: Path, *samples: Mapping[str, Any]) -> None:
    """Append a line each to ``samples.jsonl``; what was appended survives a crash of this process."""
    rows = ({name: value for name, value in sample.items() if value is not None} for sample in samples)
    _append(path / SAMPLES_FILE, rows)


def append_links(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append the transfers between workers that one workload caused."""
    _append(path / LINKS_FILE, rows)


def write_provenance(path: Path, provenance: Mapping[str, Any]) -> None:
    write_atomic(path / PROVENANCE_FILE, _pretty(provenance))


def finish(path: Path, record: RunRecord) -> None:
    """Write ``run.json``, the last file of a run, with the hashes of the others; what was appended reaches the disk
    before it.
    """
    for appended in (path / SAMPLES_FILE, path / LINKS_FILE):
        if appended.exists():
            with appended.open("rb") as handle:
                os.fsync(handle.fileno())
    hashed = dataclasses.replace(record, files=_hashes(path))
    write_atomic(path / RUN_FILE, _pretty(to_plain(hashed)))


def _hashes(path: Path) -> Dict[str, str]:
    there = [name for name in HASHED_FILES if (path / name).is_file()]
    return {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in there}


def _append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    lines = [json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n" for row in rows]
    if lines:
        with path.open("a", encoding="utf-8") as out:
            out.writelines(lines)


def _pretty(plain: Any) -> bytes:
    # Variables and paths are bytes to the system: what is no UTF-8 in them must not cost the run its record.
    return (json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8", "replace")
