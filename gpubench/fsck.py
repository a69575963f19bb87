"""Torn, foreign and edited files of campaigns and imports are found, but never repaired; nothing is written.

A run's files are checked against its record, the record against the plan, and the plan against the hashes in it. Of an
import, its table is held against the note beside it.
"""

import dataclasses
import hashlib
import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from gpubench.errors import DataError, GpubenchError
from gpubench.importers.directory import IMPORT, NOTE, TABLE
from gpubench.merge.samples import OPTIONAL, parse_samples
from gpubench.merge.table import COLUMNS, merge_directory
from gpubench.model.plan import Plan, PlannedBlock, PlannedJob, PlannedRun, PlannedWorkload
from gpubench.plan.block_design import run_id
from gpubench.render.job import turns_spec
from gpubench.render.planned import UNRESOLVED, spec_path, turns_path
from gpubench.spec import RunRecord
from gpubench.spec.plain import content_id, parse_json, parse_lines
from gpubench.spec.records import (
    DATA_FOLDER,
    HASHED_FILES,
    LINKS_FILE,
    LOGS_FILE,
    PROVENANCE,
    PROVENANCE_FILE,
    RUN_FILE,
    SAMPLES_FILE,
)
from gpubench.store.campaign import DERIVED, PLAN_FILE, Campaign
from gpubench.store.packs import INDEX, KNOWN, too_much
from gpubench.store.rundirs import Records, RunDirectory, is_temporary, read_record, run_directories

Kind = Literal["torn", "foreign", "edited"]
Row = tuple[PlannedJob, PlannedBlock, PlannedRun]

RESTORE = "restore it from a copy of the campaign, or gpubench fetch it again"
MOVE = "move it elsewhere: no reader uses it, but a pack would contain it"
REMOVE = "remove it: the file that it was to become is written again when it is needed"


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """One file that isn't what it should be.

    Args:
        kind: ``torn`` (a part is missing), ``foreign`` (it was not planned) or ``edited`` (contradicts another file).
    """

    path: str
    kind: Kind
    what: str
    then: str

    def __str__(self) -> str:
        return f"{self.path}: {self.kind}: {self.what}; {self.then}"


def torn(path: Path, what: str, then: str = RESTORE) -> Finding:
    """A part of it is missing."""
    return Finding(str(path), "torn", what, then)


def foreign(path: Path, what: str) -> Finding:
    """It was not planned."""
    return Finding(str(path), "foreign", what, MOVE)


def edited(path: Path, what: str, then: str = RESTORE) -> Finding:
    """It contradicts another file."""
    return Finding(str(path), "edited", what, then)


def stray(path: Path, what: str) -> Finding:
    """One that belongs to nothing: what a killed writer left, else ``foreign`` with ``what``."""
    return torn(path, "its writer died before the rename", REMOVE) if is_temporary(path.name) else foreign(path, what)


def planned_of_run(plan: Plan, row: Row) -> dict[str, Any]:
    """Fields that must be equal in a run's spec and its record, by their names."""
    job, block, run = row
    return {
        "run": run.run,
        "campaign": plan.campaign,
        "job": job.job,
        "block": block.block,
        "order": run.order,
        "variant": run.variant,
        "nodes": job.nodes,
        "workers_per_node": job.workers_per_node,
        "threads_per_worker": plan.threads_per_worker,
        "protocol": plan.protocol,
    }


@dataclasses.dataclass(frozen=True)
class Checked:
    """A campaign or an import that was looked at.

    Args:
        what: ``campaign`` or ``import``.
        findings: by path; none where all is as it should be.
        notes: observations that are no fault, and what can't be proven.
    """

    directory: Path
    what: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """For ``--json``."""
        findings = [dataclasses.asdict(one) for one in self.findings]
        return {"directory": str(self.directory), "what": self.what, "findings": findings, "notes": list(self.notes)}


def sha256(path: Path) -> str:
    """Hash of the file, as hex digits; raises OSError."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None where it holds none, or can't be read."""
    try:
        plain = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return plain if isinstance(plain, dict) else None


def ids_of_runs(campaign: str, jobs: Sequence[PlannedJob]) -> Iterator[tuple[str, str]]:
    """The id of every planned run, and the hash of its row, which it should be."""
    for job in jobs:
        for block in job.blocks:
            for run in block.runs:
                yield run.run, run_id(campaign, block.block, job.place, run.variant, run.workloads)


def ids_of_workloads(workloads: Sequence[PlannedWorkload]) -> Iterator[tuple[str, str]]:
    """The id of every planned workload, and the hash of its name and parameters, which it should be."""
    for one in workloads:
        yield one.params_id, one.spec.params_id


def check_plan(campaign: Campaign) -> Iterator[Finding]:
    """Whether run ids and workloads' ids are still the hashes of their content."""
    plan = campaign.plan
    sources = [(PLAN_FILE, plan.jobs)]
    sources += [(f"plan.d/{number:03d}.json", one.jobs) for number, one in enumerate(campaign.additions, start=1)]
    for name, jobs in sources:
        wrong = [run for run, hashed in ids_of_runs(plan.campaign, jobs) if run != hashed]
        if wrong:
            what = f"{len(wrong)} run ids aren't the hash of their row, the first: {wrong[0]}"
            yield edited(campaign.directory / name, what)
    for one, (found, hashed) in zip(plan.workloads, ids_of_workloads(plan.workloads), strict=True):
        if found != hashed:
            what = f"{found} isn't the hash of workload {one.name} and its parameters"
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
_FILES = {*(KNOWN["campaign"] - _FOLDERS), INDEX, *DERIVED}
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
        elif repeated := table.height - table.unique().height:  # no two samples of a run have the same number
            yield edited(campaign.results, f"{repeated} of its rows are there twice", again)


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


_THEN = "restore the run from a copy, or remove it: gpubench bench --campaign then replaces its block"
_PROVED, _OF_THE_LOG = ("UCX_", "UCXPY_"), ("UCX_LOG_FILE", "UCX_LOG_LEVEL")
_EVERY_FILE = {*HASHED_FILES, RUN_FILE}


def check_run(plan: Plan, row: Row, directory: RunDirectory, node_half: str) -> Iterator[Finding]:
    """One run directory that is planned.

    Args:
        node_half: SHA-256 of the campaign's ``node.pyz``; empty where there is none.
    """
    path = directory.path
    yield from _strays(path, _EVERY_FILE, "no run leaves such a file")
    try:
        record = read_record(path)
    except DataError as error:
        yield torn(path / RUN_FILE, error.what, _THEN)
        return
    if record is None:
        return
    wrong = [
        f"{name} is {found!r}, planned is {planned!r}"
        for name, found, planned in _record_against_plan(plan, row, directory, record)
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


def _strays(directory: Path, known: Collection[str], what: str) -> Iterator[Finding]:
    for entry in sorted(directory.iterdir()):
        if entry.name not in known or not entry.is_file() or entry.is_symlink():
            yield stray(entry, what)


def _record_against_plan(
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
    if logs.is_file() and (fault := archive_fault(logs)):
        yield torn(logs, fault)


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


def archive_fault(path: Path) -> str:
    """Why an archive of logs can't be read; empty where it can. What is too large for its size isn't unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            needed = sum(info.file_size for info in archive.infolist())
            if wrong := too_much(needed, path.stat().st_size):
                return wrong
            return "" if archive.testzip() is None else "it can't be unpacked"
    # RuntimeError: a file in it is encrypted. NotImplementedError: it is compressed in a way that Python doesn't know.
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError):
        return "it can't be unpacked"


_FILES_OF_IMPORTS = {NOTE, TABLE, "report.html", "report.md"}
_AGAIN = "import the results again"
_HASH = re.compile(r"[0-9a-f]{64}")


def check_import(directory: Path) -> Checked:
    """Check every file; nothing is written."""
    note = read_object(directory / NOTE)
    found = list(_strays(directory, _FILES_OF_IMPORTS, "no import has such a file"))
    if note is None or note.get("schema") != IMPORT:
        what = "cut off or not JSON" if note is None else f"it is {note.get('schema')}, not {IMPORT}"
        found.append(torn(directory / NOTE, what, _AGAIN))
        return Checked(directory, "import", tuple(sorted(found)), ())
    found += _table(directory / TABLE, note)
    try:
        found += _note(directory / NOTE, note)
    except (TypeError, ValueError, AttributeError):  # somebody else's idea of what stands there
        found.append(edited(directory / NOTE, "its fields aren't those of an import", _AGAIN))
    notes = ["the source files themselves aren't here: their hashes stand in import.json"]
    if "results_sha256" not in note:
        notes.append("unproven: an older gpubench wrote it, and no hash of its table")
    return Checked(directory, "import", tuple(sorted(found)), tuple(notes))


def _table(path: Path, note: dict[str, Any]) -> Iterator[Finding]:
    try:
        rows = pl.read_parquet(path)
        digest = sha256(path)
    except (OSError, pl.exceptions.PolarsError):
        yield torn(path, "it can't be read", _AGAIN)
        return
    if note.get("results_sha256", digest) != digest:
        yield edited(path, "it isn't what the import wrote: import.json has another hash", _AGAIN)
    elif rows.height != note.get("kept"):
        yield edited(path, f"{rows.height} rows, import.json says {note.get('kept')}", _AGAIN)
    missing = sorted(COLUMNS.keys() - set(rows.columns) - set(OPTIONAL))
    if missing:
        yield edited(path, f"it lacks column {', '.join(missing)}", _AGAIN)


def _note(path: Path, note: dict[str, Any]) -> Iterator[Finding]:
    sources = [one for one in note.get("sources", []) if isinstance(one, dict)]
    for one in sources:
        digest = one.get("sha256")
        if digest is not None and not (isinstance(digest, str) and _HASH.fullmatch(digest)):
            yield edited(path, f"the hash of source {one.get('file')} is none", _AGAIN)
    if note.get("rows_in") != sum(one.get("rows_in", 0) for one in sources):
        yield edited(path, "rows_in isn't the sum over the sources", _AGAIN)
    for name, document in dict(note.get("documents", {})).items():
        if content_id(document) != name:
            yield edited(path, f"document {name} isn't what its hash says", _AGAIN)
