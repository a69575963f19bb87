"""Run directories against their records, and records against the plan."""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpubench.errors import DataError
from gpubench.fsck.findings import Finding, Row, edited, foreign, planned_of_run, read_object, sha256, stray, torn
from gpubench.merge.samples import parse_samples
from gpubench.model.plan import Plan
from gpubench.spec import RunRecord
from gpubench.spec.plain import parse_lines
from gpubench.spec.records import (
    HASHED_FILES,
    LINKS_FILE,
    LOGS_FILE,
    PROVENANCE,
    PROVENANCE_FILE,
    RUN_FILE,
    SAMPLES_FILE,
)
from gpubench.store.rundirs import RunDirectory, read_record

_THEN = "restore the run from a copy, or remove it: gpubench bench --campaign then replaces its block"
_PROVED, _OF_THE_LOG = ("UCX_", "UCXPY_"), ("UCX_LOG_FILE", "UCX_LOG_LEVEL")
_EVERY_FILE = {*HASHED_FILES, RUN_FILE}


def check_run(plan: Plan, row: Row, directory: RunDirectory, node_half: str) -> Iterator[Finding]:
    """One run directory that is planned.

    Args:
        node_half: SHA-256 of the campaign's ``node.pyz``; empty where there is none.
    """
    path = directory.path
    yield from _names(path)
    try:
        record = read_record(path)
    except DataError as error:
        yield torn(path / RUN_FILE, error.what, _THEN)
        return
    if record is None:
        return
    wrong = [
        f"{name} is {found!r}, planned is {planned!r}"
        for name, found, planned in _against_plan(plan, row, directory, record)
        if found != planned
    ]
    if node_half and record.node_half not in ("", node_half):
        wrong.append(f"it ran another node half than node.pyz: {record.node_half[:12]}, not {node_half[:12]}")
    if wrong:
        yield edited(path / RUN_FILE, "; ".join(wrong), _THEN)
    may_be_missing = plan.site.scheduler == "kubernetes"
    other = list(_against_hashes(path, record.files, logs_may_be_missing=may_be_missing)) if record.files else []
    yield from other
    said = {one.path for one in other}
    yield from (one for one in _by_content(plan, row, path, record) if one.path not in said)


def _names(path: Path) -> Iterator[Finding]:
    for entry in sorted(path.iterdir()):
        if entry.name in _EVERY_FILE and entry.is_file() and not entry.is_symlink():
            continue
        yield stray(entry, "no run leaves such a file")


def _against_plan(
    plan: Plan, row: Row, directory: RunDirectory, record: RunRecord
) -> Iterator[tuple[str, object, object]]:
    run = row[2]
    variant = plan.variant(run.variant)
    planned: dict[str, object] = {**planned_of_run(plan, row), "attempt": directory.attempt, "site": plan.site.name}
    if plan.device != "auto":  # settled on the node
        planned["device"] = plan.device
    if variant and variant.image:
        planned |= {"image": variant.image.id, "ucx_version": variant.image.ucx_version}
    yield from ((name, getattr(record, name), value) for name, value in planned.items())
    if record.workloads:
        names = sorted(one.params_id for one in record.workloads)
        yield ("workloads", names, sorted(run.workloads))
    workloads = {one.params_id: one for one in plan.workloads}
    for one in record.workloads:
        if said := workloads.get(one.params_id):
            yield (f"workload of {one.params_id}", one.workload, said.name)
            for name in ("backend", "params", "reps", "warmup"):
                yield (f"{name} of {said.name}", getattr(one, name), getattr(said, name))


def _against_hashes(path: Path, said: Mapping[str, str], *, logs_may_be_missing: bool) -> Iterator[Finding]:
    for name in HASHED_FILES:
        file = path / name
        if name in said and not file.is_file():
            if name != LOGS_FILE or not logs_may_be_missing:  # logs that are too large don't come home
                yield torn(file, "the run wrote it, and it isn't here")
        elif name in said and sha256(file) != said[name]:
            yield edited(file, "it isn't what the run wrote: its record has another hash")
        elif name not in said and file.is_file():
            yield foreign(file, "the run wrote no such file")


def _by_content(plan: Plan, row: Row, path: Path, record: RunRecord) -> Iterator[Finding]:
    """What can be known without hashes: whether each file is whole, and says what record and plan say."""
    yield from _samples(path / SAMPLES_FILE, record, turns=bool(row[1].turns))
    links = path / LINKS_FILE
    try:
        text = links.read_text(encoding="utf-8") if links.is_file() else ""
        parse_lines(text)
        if text and not text.endswith("\n"):
            yield torn(links, "its last line has no end")
    except ValueError as error:
        yield edited(links, str(error))
    provenance = read_object(path / PROVENANCE_FILE)
    if provenance is None or provenance.get("schema") != PROVENANCE:
        what = f"no {PROVENANCE} can be read from it"
        yield torn(path / PROVENANCE_FILE, what)
    elif (provenance.get("run"), provenance.get("attempt", record.attempt)) != (record.run, record.attempt):
        yield edited(path / PROVENANCE_FILE, "it is that of another run")
    elif wrong := [*dict.fromkeys(_environments(plan, row, provenance))]:  # each process has the same fault
        yield edited(path / PROVENANCE_FILE, "; ".join(wrong))
    logs = path / LOGS_FILE
    if logs.is_file() and not _is_whole_archive(logs):
        yield torn(logs, "it can't be unpacked")


def _environments(plan: Plan, row: Row, provenance: Mapping[str, Any]) -> Iterator[str]:
    """Where manifest and ``UCX_*`` of the run's processes aren't the planned ones, which every run checked itself."""
    variant = plan.variant(row[2].variant)
    if variant is None or variant.image is None:
        return
    if provenance.get("manifest") != variant.image.manifest:
        yield f"manifest is {provenance.get('manifest')!r}, planned is {variant.image.manifest!r}"
    env = {**variant.image.env, **plan.site.env, **variant.env}
    planned = {name: value for name, value in env.items() if name.startswith(_PROVED) and name not in _OF_THE_LOG}
    processes = provenance.get("processes")
    if not isinstance(processes, list):
        yield "it holds no list of processes"
        return
    for process in processes:
        try:
            role, found = process["role"], process["ucx"]["env_at_start"]
            wrong = [name for name, value in planned.items() if found.get(name) != value]
        except (TypeError, KeyError, AttributeError):
            yield "a process in it has no role, or no UCX_*"
            continue
        yield from (f"{name} of {role} is {found.get(name)!r}, planned is {planned[name]!r}" for name in wrong)


def _samples(path: Path, record: RunRecord, *, turns: bool) -> Iterator[Finding]:
    """``turns``: the runs of its block took turns, and each turn began with a warm-up that isn't counted."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    parsed = parse_samples(text, path.name, {one.params_id: one for one in record.workloads})
    for error in parsed.errors:
        yield edited(path, error.what)
    if text and not text.endswith("\n"):
        yield torn(path, "its last line has no end")
    elif not parsed.errors:
        counts = Counter((line.params_id, line.warmup) for line, _ in parsed.samples)
        for one in record.workloads:
            timed, warm = counts[one.params_id, False], counts[one.params_id, True]
            few, many = timed < one.reps or warm < one.warmup, timed > one.reps or (warm > one.warmup and not turns)
            if one.status == "ok" and (few or many):
                said = f"its record says {one.reps} and {one.warmup}"
                what = f"{timed} samples and {warm} warm-ups of {one.workload}, {said}"
                yield (torn if few else edited)(path, what)


def _is_whole_archive(path: Path) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile, ValueError):
        return False
