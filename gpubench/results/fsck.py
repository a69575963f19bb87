"""Whether a campaign's files are those that its runs wrote: hashes and counts against the plan; nothing is written.

The plan is checked against the ids in it, each record against the plan, each file of a run against its hash in the
record. Of an import, the table is checked against the note beside it.
"""

import dataclasses
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpubench.errors import DataError, GpubenchError
from gpubench.model.plan import Plan, PlannedBlock, PlannedJob, PlannedRun
from gpubench.node.spec import RunRecord
from gpubench.node.spec.plain import content_id, parse_json
from gpubench.node.spec.records import HASHED_FILES, LOGS_FILE, RUN_FILE, SAMPLES_FILE
from gpubench.plan.block_design import run_id
from gpubench.results.importers.directory import NOTE, open_imported
from gpubench.results.targets import IMPORT_FILE
from gpubench.store.campaign import PLAN_FILE, Campaign
from gpubench.store.rundirs import RunDirectory, read_record, run_directories

RESTORE = "restore it from a copy of the campaign"
REPEAT = "restore the run from a copy, or remove it: gpubench bench --campaign then replaces its block"
AGAIN = "import the results again"


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """One file that isn't what it should be, and what to do about it."""

    path: str
    what: str
    then: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}; {self.then}"


def check(path: Path) -> list[Finding]:
    """What is wrong in a campaign or an import."""
    return check_import(path) if (path / IMPORT_FILE).is_file() else check_campaign(path)


def check_campaign(directory: Path) -> list[Finding]:
    """Every file that isn't what plan and records say; a run without a record counts as lost, and is no finding."""
    try:
        campaign = Campaign.open(directory)
    except GpubenchError as error:
        return [Finding(str(directory / PLAN_FILE), error.what, error.then or RESTORE)]
    return sorted({*_plan(campaign), *_manifests(campaign), *_runs(campaign)})


def check_import(directory: Path) -> list[Finding]:
    """Whether note and table can be read, and the table is the one that the import wrote."""
    try:
        open_imported(directory)
    except GpubenchError as error:
        return [Finding(str(directory / NOTE), error.what, error.then or AGAIN)]
    return []


def sha256(path: Path) -> str:
    """Hash of the file, as hex digits; raises OSError."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _plan(campaign: Campaign) -> Iterator[Finding]:
    """Run ids and ids of workloads that aren't the hashes of their content."""
    plan, sources = campaign.plan, [(PLAN_FILE, campaign.plan.jobs)]
    sources += [
        (f"plan.d/{number:03d}.json", addition.jobs) for number, addition in enumerate(campaign.additions, start=1)
    ]
    for name, jobs in sources:
        rows = [(job, block, run) for job in jobs for block in job.blocks for run in block.runs]
        wrong = [
            run.run
            for job, block, run in rows
            if run.run != run_id(plan.campaign, block.block, job.place, run.variant, run.workloads)
        ]
        if wrong:
            what = f"{len(wrong)} run ids aren't the hash of their row, the first: {wrong[0]}"
            yield Finding(str(campaign.directory / name), what, RESTORE)
    params_ids = {workload.params_id for workload in plan.workloads}
    strange = sorted({params_id for _, _, run in campaign.rows() for params_id in run.workloads} - params_ids)
    if strange:
        what = f"{strange[0]} isn't the hash of any workload of the plan and its parameters"
        yield Finding(str(campaign.directory / PLAN_FILE), what, RESTORE)


def _manifests(campaign: Campaign) -> Iterator[Finding]:
    for name in sorted(
        {variant.image.manifest for variant in campaign.plan.variants if variant.image and variant.image.manifest}
    ):
        path = campaign.manifest_path(name)
        try:
            same = content_id(parse_json(path.read_bytes())) == name
        except (OSError, ValueError):
            yield Finding(str(path), "an image's manifest is missing or damaged", RESTORE)
        else:
            if not same:
                yield Finding(str(path), "its name isn't the hash of what it says", RESTORE)


def _runs(campaign: Campaign) -> Iterator[Finding]:
    rows = {run.run: (job, block, run) for job, block, run in campaign.rows()}
    node_half = sha256(campaign.node_half) if campaign.node_half.is_file() else ""
    for directory in run_directories(campaign.runs_dir):
        record_file = str(directory.path / RUN_FILE)
        if directory.run not in rows:
            yield Finding(str(directory.path), "no run of the plan has that id", "move it elsewhere")
            continue
        try:
            record = read_record(directory.path)
        except DataError as error:
            yield Finding(record_file, error.what, REPEAT)
            continue
        if record is None:
            continue
        planned = _planned(campaign.plan, *rows[directory.run], directory)
        wrong = [f"{name} is {value!r}, planned is {planned[name]!r}" for name, value in _recorded(record, planned)]
        if record.node_half != node_half:
            wrong.append(f"it ran another node half than node.pyz: {record.node_half[:12]}, not {node_half[:12]}")
        if wrong:
            yield Finding(record_file, "; ".join(wrong), REPEAT)
        yield from _hashes(directory.path, record, logs_may_be_missing=campaign.plan.site.scheduler == "kubernetes")


def _planned(
    plan: Plan, job: PlannedJob, block: PlannedBlock, run: PlannedRun, directory: RunDirectory
) -> dict[str, Any]:
    """What the record has to say, by its fields; ``workloads``: name, back-end, parameters and counts of each."""
    workloads = {workload.params_id: workload for workload in plan.workloads}
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
        "workloads": {
            workload.params_id: (workload.name, workload.backend, workload.params, workload.reps, workload.warmup)
            for workload in (workloads[params_id] for params_id in run.workloads if params_id in workloads)
        },
    }
    if plan.device != "auto":  # settled on the node
        planned["device"] = plan.device
    if (variant := plan.variant(run.variant)) and variant.image:
        planned |= {"image": variant.image.id, "ucx_version": variant.image.ucx_version}
    return planned


def _recorded(record: RunRecord, planned: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fields of the record that differ. One without workloads failed before the first."""
    for name, value in planned.items():
        recorded = getattr(record, name)
        if name == "workloads":
            recorded = {
                workload.params_id: (
                    workload.workload,
                    workload.backend,
                    workload.params,
                    workload.reps,
                    workload.warmup,
                )
                for workload in recorded
            }
        if recorded != value and not (name == "workloads" and not recorded):
            yield name, recorded


def _hashes(directory: Path, record: RunRecord, *, logs_may_be_missing: bool) -> Iterator[Finding]:
    for name in HASHED_FILES:
        file, recorded = directory / name, record.files.get(name)
        if recorded is None or (name == LOGS_FILE and logs_may_be_missing and not file.exists()):
            continue  # logs that are too large don't come home from pods
        try:
            same = sha256(file) == recorded
        except OSError:
            yield Finding(str(file), "the run wrote it, and it can't be read here", RESTORE)
        else:
            if not same:
                yield Finding(str(file), "it isn't what the run wrote: its record has another hash", RESTORE)
    samples = directory / SAMPLES_FILE
    if SAMPLES_FILE not in record.files and samples.is_file():
        yield Finding(str(samples), "the run wrote no such file", "move it elsewhere")
