"""Whether a campaign's files are those that its runs wrote: hashes and ids, and records against the plan.

Every file of a run is held against its hash in the record, every record against the plan, and the plan against the ids
in it. Of an import, the table is held against the note beside it. Nothing is written.
"""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

from gpubench.errors import DataError, GpubenchError, UsageError
from gpubench.launchers import LAUNCHERS
from gpubench.model.image import manifest_id
from gpubench.model.plan import Plan, PlannedBlock, PlannedJob, PlannedRun
from gpubench.model.text import counted
from gpubench.node.spec import RunRecord
from gpubench.node.spec.plain import parse_json
from gpubench.node.spec.records import HASHED_FILES, LOGS_FILE, RUN_FILE
from gpubench.plan.block_design import run_id
from gpubench.results.importers.directory import NOTE, TABLE, is_imported, open_imported
from gpubench.results.targets import kept_in
from gpubench.store.campaign import PLAN_FILE, Campaign
from gpubench.store.rundirs import RunDirectory, read_record, run_directories

RESTORE = "restore it from a copy of the campaign"
MOVE = "move it elsewhere"
REPEAT = "restore the run from a copy, or remove it: gpubench bench --campaign then replaces its block"
_PLANNED = attrgetter("params_id", "name", "backend", "params", "reps", "warmup")
_RECORDED = attrgetter("params_id", "workload", "backend", "params", "reps", "warmup")


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """One file that isn't what it should be, and what to do about it."""

    path: str
    what: str
    then: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}; {self.then}"


def check_all(directories: Iterable[Path]) -> dict[Path, list[Finding]]:
    """What is wrong in each campaign and import that these directories are or hold, and in a directory itself.

    Raises:
        UsageError: one is none, and holds none.
    """
    findings: dict[Path, list[Finding]] = {}
    for directory in directories:
        if stray := _strays(directory):
            findings[directory] = stray
        try:
            findings |= {kept: check(kept) for kept in kept_in(directory, searches=True)}
        except UsageError:
            if not stray:
                raise
    return findings


def check(directory: Path) -> list[Finding]:
    """What is wrong in a campaign or an import; a run without a record counts as lost, and is no finding."""
    imported = is_imported(directory)
    try:
        if imported:
            open_imported(directory)
            return []
        campaign = Campaign.open(directory)
    except GpubenchError as error:
        names = (TABLE, NOTE) if imported else (PLAN_FILE,)
        path = next((path for path in (str(directory / name) for name in names) if path in error.what), "")
        what = error.what.removeprefix(path).lstrip()
        return [Finding(path or str(directory / names[-1]), what, error.then or RESTORE)]
    return sorted({*_plan(campaign), *_manifests(campaign), *_runs(campaign)})


def _strays(directory: Path) -> list[Finding]:
    """``directory``, and those in it, that hold results, and lack the plan or the note that says of what."""
    findings = []
    for path in (directory, *sorted(directory.glob("*"))):
        if not (path / PLAN_FILE).exists() and not (path / NOTE).exists():
            missing = PLAN_FILE if any(path.glob(f"runs/*/{RUN_FILE}")) else NOTE if (path / TABLE).is_file() else ""
            what = "it is gone, and its results are here"
            findings += [Finding(str(path / missing), what, RESTORE)] if missing else []
    return findings


def _plan(campaign: Campaign) -> Iterator[Finding]:
    """Run ids and ids of workloads that aren't the hashes of their content."""
    plan, params_ids = campaign.plan, {workload.params_id for workload in campaign.plan.workloads}
    added = {f"plan.d/{number:03d}.json": addition.jobs for number, addition in enumerate(campaign.additions, start=1)}
    for name, jobs in {PLAN_FILE: plan.jobs, **added}.items():
        rows = [*plan.model_copy(update={"jobs": jobs}).runs()]
        wrong = [
            run.run
            for job, block, run in rows
            if run.run != run_id(plan.campaign, block.block, job.place, run.variant, run.workloads)
        ]
        if wrong:
            what = f"{counted(len(wrong), 'run id')} not the hash of the row, the first: {wrong[0]}"
            yield Finding(str(campaign.directory / name), what, RESTORE)
        for params_id in {params_id for _, _, run in rows for params_id in run.workloads} - params_ids:
            what = f"{params_id} isn't the hash of any workload of the plan and its parameters"
            yield Finding(str(campaign.directory / PLAN_FILE), what, RESTORE)


def _manifests(campaign: Campaign) -> Iterator[Finding]:
    for image in filter(None, (variant.image for variant in campaign.plan.variants)):
        path = campaign.manifest_path(image.manifest)
        try:
            whole = not image.manifest or manifest_id(parse_json(path.read_bytes())) == image.manifest
        except (OSError, ValueError):
            whole = False
        if not whole:
            yield Finding(str(path), "an image's manifest is missing, or its name isn't the hash of it", RESTORE)


def _runs(campaign: Campaign) -> Iterator[Finding]:
    rows = {run.run: (job, block, run) for job, block, run in campaign.rows()}
    node_half = _sha256(campaign.node_half)
    ran: dict[Path, str] = {}
    by_logs = LAUNCHERS[campaign.plan.site.launcher].brings_files
    for directory in run_directories(campaign.runs_dir):
        if directory.run not in rows:
            yield Finding(str(directory.path), "no run of the plan has that id", MOVE)
            continue
        try:
            record = read_record(directory.path)
        except DataError as error:
            yield Finding(str(directory.path / RUN_FILE), error.what, REPEAT)
            continue
        if record is not None:
            ran[directory.path / RUN_FILE] = record.node_half
            if wrong := [*_contradictions(campaign.plan, *rows[directory.run], directory, record)]:
                yield Finding(str(directory.path / RUN_FILE), "; ".join(wrong), REPEAT)
            yield from _files(directory.path, record, by_logs=by_logs)
    others = [path for path, half in ran.items() if half != node_half]
    if others and len(others) == len(ran):
        what = "it isn't what the runs imported: their records have another hash" if node_half else "it is gone"
        yield Finding(str(campaign.node_half), what, RESTORE)
    else:
        for path in others:
            what = f"it ran another node half than node.pyz: {ran[path][:12]}, not {node_half[:12]}"
            yield Finding(str(path), what, REPEAT)


def _contradictions(  # noqa: PLR0917 - a row of the plan, and what was made of it
    plan: Plan, job: PlannedJob, block: PlannedBlock, run: PlannedRun, directory: RunDirectory, record: RunRecord
) -> Iterator[str]:
    """Fields of the record that differ from the plan. A record without workloads failed before the first."""
    planned: dict[str, Any] = {
        "run": run.run,
        "attempt": directory.attempt,
        "campaign": plan.campaign,
        "site": plan.site.name,
        "job": job.job,
        "block": block.block,
        "order": run.order,
        "variant": run.variant,
        "nodes": job.nodes,
        "workers_per_node": job.workers_per_node,
        "threads_per_worker": plan.threads_per_worker,
        "protocol": plan.protocol,
    }
    if plan.device != "auto":  # settled on the node
        planned["device"] = plan.device
    if (variant := plan.variant(run.variant)) and variant.image:
        planned |= {"image": variant.image.id, "ucx_version": variant.image.ucx_version}
    pairs = [(name, getattr(record, name), value) for name, value in planned.items()]
    if record.workloads:
        rows = [_PLANNED(workload) for workload in plan.workloads if workload.params_id in run.workloads]
        pairs.append(("workloads", sorted(map(_RECORDED, record.workloads), key=str), sorted(rows, key=str)))
    yield from (f"{name} is {is_!r}, planned is {value!r}" for name, is_, value in pairs if is_ != value)


def _files(directory: Path, record: RunRecord, *, by_logs: bool) -> Iterator[Finding]:
    """Files that the record names and that are missing or changed, and files that it doesn't name.

    Args:
        by_logs: they came home in a log, which may leave out logs that are too large.
    """
    for name in filter(record.files.__contains__, HASHED_FILES):
        path, digest = directory / name, _sha256(directory / name)
        if not digest and not (by_logs and name == LOGS_FILE):
            yield Finding(str(path), "the run wrote it, and it can't be read here", RESTORE)
        elif digest and digest != record.files[name]:
            yield Finding(str(path), "it isn't what the run wrote: its record has another hash", RESTORE)
    for path in directory.iterdir():  # hidden ones are temporary
        if path.is_file() and path.name not in {RUN_FILE, *record.files} and not path.name.startswith("."):
            yield Finding(str(path), "the run's record doesn't name it", MOVE)


def _sha256(path: Path) -> str:
    """Hash of the file, as hex digits; empty where it can't be read."""
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError:
        return ""
