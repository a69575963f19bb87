"""A campaign's directory, file by file: the plan against the hashes in it, and what was made from the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from gpubench.errors import DataError, GpubenchError
from gpubench.fsck.findings import (
    REMOVE,
    RESTORE,
    Checked,
    Finding,
    Row,
    edited,
    foreign,
    planned_of_run,
    read_object,
    sha256,
    stray,
    torn,
)
from gpubench.fsck.runs import check_run
from gpubench.merge.samples import OPTIONAL
from gpubench.merge.table import COLUMNS, merge_directory
from gpubench.model.plan import Plan
from gpubench.plan.block_design import run_id
from gpubench.render.job import turns_spec
from gpubench.render.planned import UNRESOLVED, spec_path, turns_path
from gpubench.spec import WorkloadSpec
from gpubench.spec.plain import content_id
from gpubench.spec.records import DATA_FOLDER, RUN_FILE
from gpubench.store.campaign import CACHE_FILE, PLAN_FILE, Campaign
from gpubench.store.packs import INDEX, KNOWN
from gpubench.store.rundirs import Records, RunDirectory, is_temporary, run_directories


def check_plan(campaign: Campaign) -> Iterator[Finding]:
    """Whether run ids and workloads' ids are still the hashes of their content."""
    plan = campaign.plan
    sources = [(PLAN_FILE, plan.jobs)]
    sources += [(f"plan.d/{number:03d}.json", one.jobs) for number, one in enumerate(campaign.additions, start=1)]
    for name, jobs in sources:
        wrong = [
            run.run
            for job in jobs
            for block in job.blocks
            for run in block.runs
            if run.run != run_id(plan.campaign, block.block, job.place, run.variant, run.workloads)
        ]
        if wrong:
            what = f"{len(wrong)} run ids aren't the hash of their row, the first: {wrong[0]}"
            yield edited(campaign.directory / name, what)
    for one in plan.workloads:
        spec = WorkloadSpec(one.name, one.backend, one.params, one.reps, one.warmup, one.timeout_s)
        if spec.params_id != one.params_id:
            what = f"{one.params_id} isn't the hash of workload {one.name} and its parameters"
            yield edited(campaign.directory / PLAN_FILE, what)


def check_specs(campaign: Campaign, node_half: str) -> Iterator[Finding]:
    """Every spec that is there against the plan, and those that are missing though others of its job are there."""
    plan = campaign.plan
    planned: dict[Path, Row] = {
        campaign.job_dir(job.job) / spec_path(block, run): (job, block, run) for job, block, run in campaign.rows()
    }
    turns = {
        campaign.job_dir(job.job) / turns_path(block): turns_spec(plan, job, block).dump()
        for job in campaign.jobs
        for block in job.blocks
        if block.turns
    }
    there = set((campaign.directory / "jobs").glob("*/specs/*.json"))
    for path in sorted(there - planned.keys() - turns.keys()):
        if path.parents[1].name in {job.job for job in campaign.jobs}:
            yield foreign(path, "no run of the plan has such a spec")
    rendered = {path.parents[1] for path in there}
    for path, text in turns.items():
        if path not in there and path.parents[1] in rendered:
            yield torn(path, "the block's turns are missing", f"gpubench plan --out {campaign.directory}")
        elif path in there and path.read_text("utf-8", errors="replace") != text:
            yield edited(path, "the turns aren't those of the plan")
    for path, row in planned.items():
        if path not in there:
            if path.parents[1] in rendered:
                yield torn(path, "the run's spec is missing", f"gpubench plan --out {campaign.directory}")
            continue
        spec = read_object(path)
        if spec is None:
            yield torn(path, "cut off or not JSON")
            continue
        try:
            wrong = _against_plan(plan, row, spec)
        except (TypeError, AttributeError):  # somebody else's idea of what stands there
            wrong = ["workloads"]
        if node_half and spec.get("node_half", node_half) != node_half:
            wrong.append("node_half (of node.pyz)")
        if wrong:
            yield edited(path, f"it isn't what the plan says: {', '.join(wrong)}")


def _against_plan(plan: Plan, row: Row, spec: dict[str, Any]) -> list[str]:
    job, _, run = row
    variant = plan.variant(run.variant)
    image = (variant.image if variant else None) or UNRESOLVED
    env = {**image.env, **plan.site.env, **plan.workarounds(job.nodes), **(variant.env if variant else {})}
    said = {**planned_of_run(plan, row), "image": image.id, "manifest": image.manifest, "env": env}
    wrong = [name for name, value in said.items() if spec.get(name, value) != value]
    workloads = {one.params_id: (one.name, one.reps, one.warmup) for one in plan.workloads}
    taken = [(one.get("name"), one.get("reps"), one.get("warmup")) for one in spec.get("workloads", [])]
    return wrong if taken == [workloads.get(one) for one in run.workloads] else [*wrong, "workloads"]


def check_manifests(campaign: Campaign) -> Iterator[Finding]:
    """Every manifest against the hash in its name, and those that the plan names against what is there."""
    named = {one.image.manifest for one in campaign.plan.variants if one.image and one.image.manifest}
    there = sorted((campaign.directory / "manifests").glob("*"))
    for path in there:
        plain = read_object(path) if path.suffix == ".json" else None
        if path.suffix != ".json" or path.stem not in named:
            yield foreign(path, "no variant's image has that manifest")
        elif plain is None:
            yield torn(path, "cut off or not JSON")
        elif content_id(plain) != path.stem:
            yield edited(path, "its name isn't the hash of what it says")
    for name in sorted(named - {path.stem for path in there}):
        path = campaign.manifest_path(name)
        yield torn(path, "an image's manifest is missing")


VERDICTS = "gpubench/verdicts/"
_FOLDERS = {"plan.d", "manifests", "jobs", "runs", DATA_FOLDER}
_DERIVED = {CACHE_FILE, "results.parquet", "verdicts.json", "report.html", "report.md"}
_FILES = {*(KNOWN["campaign"] - _FOLDERS), INDEX, *_DERIVED}
_IN_PASSING = {".fetch": "a fetch that was cut off", ".rsync-partial": "a fetch that was cut off"}


def check_campaign(directory: Path, living: Callable[[Campaign, set[str]], set[str]]) -> Checked:
    """Check every file; nothing is written.

    Args:
        directory: holds a plan, or did.
        living: of these jobs of the campaign, those that may still write; asked where runs have no record.
    """
    try:
        campaign = Campaign.open(directory)
    except GpubenchError as error:
        why = torn(directory, error.what, error.then or RESTORE)
        return Checked(directory, "campaign", (why,), ("its plan can't be read: nothing else was looked at",))
    attempts = run_directories(campaign.runs_dir)
    recorded = {one.run for one in attempts if (one.path / RUN_FILE).exists()}
    alive = living(campaign, {job.job for job, _, run in campaign.rows() if run.run not in recorded})
    node_half = sha256(campaign.node_half) if campaign.node_half.is_file() else ""
    found = [
        *_top(campaign),
        *check_plan(campaign),
        *check_specs(campaign, node_half),
        *check_manifests(campaign),
        *(
            foreign(campaign.job_dir(name), "no job of the plan has that name")
            for name in _names(directory / "jobs")
            if name not in {job.job for job in campaign.jobs}
        ),
        *_runs(campaign, attempts, node_half),
    ]
    if attempts and not node_half:
        found.append(torn(campaign.node_half, "there are runs, and it is missing"))
    if alive:
        found = [one for one in found if not is_temporary(Path(one.path).name)]
    else:
        found += _results(campaign)
    return Checked(directory, "campaign", tuple(sorted(set(found))), tuple(_notes(attempts, alive)))


def _names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir()) if directory.is_dir() else []


def _top(campaign: Campaign) -> Iterator[Finding]:
    for entry in sorted(campaign.directory.iterdir()):
        if entry.name in _IN_PASSING:
            yield torn(entry, _IN_PASSING[entry.name], "gpubench fetch it again")
        elif entry.name not in _FILES | _FOLDERS or entry.is_symlink() or (entry.name in _FOLDERS) != entry.is_dir():
            yield stray(entry, "no campaign has such a file")
    for folder in (campaign.directory / "plan.d", campaign.directory / "manifests", *campaign.directory.glob("jobs/*")):
        for name in _names(folder):
            if is_temporary(name):
                yield torn(folder / name, "its writer died before the rename", REMOVE)
            elif folder.name == "plan.d" and name not in {f"{n + 1:03d}.json" for n in range(len(campaign.additions))}:
                yield foreign(folder / name, "it was not appended to the plan")


def _runs(campaign: Campaign, attempts: list[RunDirectory], node_half: str) -> Iterator[Finding]:
    rows = {run.run: (job, block, run) for job, block, run in campaign.rows()}
    named = {one.path.name for one in attempts}
    for path in (campaign.runs_dir / name for name in _names(campaign.runs_dir) if name not in named):
        if is_temporary(path.name):
            yield torn(path, "whoever wrote it was killed", REMOVE)
        else:
            yield foreign(path, "no run has such a name")
    for one in attempts:
        if one.run not in rows:
            yield foreign(one.path, "no run of the plan has that id")
            continue
        try:
            yield from check_run(campaign.plan, rows[one.run], one, node_half)
        except OSError as error:
            yield torn(one.path, f"can't be read: {error.strerror}", "check its permissions")


def _results(campaign: Campaign) -> Iterator[Finding]:
    """Derived files are never read back, but an edited table still misleads its readers."""
    verdicts = campaign.verdicts
    if verdicts.exists() and not str((read_object(verdicts) or {}).get("schema", "")).startswith(VERDICTS):
        yield torn(verdicts, "it holds no verdicts", f"gpubench report {campaign.directory}")
    if not campaign.results.exists():
        return
    again = f"gpubench compare {campaign.directory}"
    try:
        table = pl.read_parquet(campaign.results)
    except (OSError, pl.exceptions.PolarsError):
        yield torn(campaign.results, "it can't be read", again)
        return
    # An older gpubench wrote none of these, and read none.
    table = table.with_columns(
        pl.lit(None, dtype=COLUMNS[name]).alias(name) for name in OPTIONAL if name not in table.columns
    )
    if dict(table.schema) != COLUMNS:
        yield edited(campaign.results, "its columns aren't those of this gpubench", again)
        return
    table, merged = table.select(*COLUMNS), merge_directory(campaign.runs_dir).frame
    if not table.equals(merged):
        strange = table.join(merged, on=list(COLUMNS), how="anti", nulls_equal=True).height
        if strange:
            yield edited(campaign.results, f"{strange} of its rows belong to no run that is here", again)


def _notes(attempts: list[RunDirectory], alive: set[str]) -> Iterator[str]:
    if alive:
        yield f"job {', '.join(sorted(alive))} may still be running: files that are still missing are not reported"
    records = Records()
    unproven = open_ = 0
    for one in attempts:
        try:
            record = records.read(one.path)
        except DataError:
            continue
        open_ += record is None
        unproven += record is not None and not record.files
    if open_ and not alive:
        yield f"{open_} run directories without a record: those runs were killed, and count as lost (gpubench status)"
    if unproven:
        yield f"unproven: {unproven} runs of an older gpubench, whose records hold no hashes of the other files"
