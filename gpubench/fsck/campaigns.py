"""A campaign's directory, file by file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from gpubench.errors import DataError, GpubenchError
from gpubench.fsck import plans
from gpubench.fsck.findings import MOVE, REMOVE, RESTORE, Checked, Finding, read_object, sha256
from gpubench.fsck.runs import check_run
from gpubench.merge.directories import merge_directory
from gpubench.merge.table import COLUMNS
from gpubench.spec.records import RUN_FILE
from gpubench.store.campaign import Campaign
from gpubench.store.packs import INDEX, KNOWN
from gpubench.store.remains import is_temporary
from gpubench.store.rundirs import Records, RunDirectory, run_directories

VERDICTS = "gpubench/verdicts/"
_FOLDERS = {"plan.d", "manifests", "jobs", "runs"}
_FILES = {*(KNOWN["campaign"] - _FOLDERS), INDEX, "results.parquet", "verdicts.json", "report.html", "report.md"}
_IN_PASSING = {".fetch": "a fetch that was cut off", ".rsync-partial": "a fetch that was cut off"}


def check_campaign(directory: Path, living: Callable[[Campaign, set[str]], set[str]]) -> Checked:
    """Look at every file; nothing is written.

    Args:
        directory: holds a plan, or did.
        living: of these jobs of the campaign, those that may still write; asked where runs have no record.
    """
    try:
        campaign = Campaign.open(directory)
    except GpubenchError as error:
        why = Finding(str(directory), "torn", error.what, error.then or RESTORE)
        return Checked(directory, "campaign", (why,), ("its plan can't be read: nothing else was looked at",))
    attempts = run_directories(campaign.runs_dir)
    alive = living(campaign, _unrecorded(campaign, attempts))
    node_half = sha256(campaign.node_half) if campaign.node_half.is_file() else ""
    found = [
        *_top(campaign),
        *plans.check_plan(campaign),
        *plans.check_specs(campaign, node_half),
        *plans.check_manifests(campaign),
        *plans.unknown_jobs(campaign, _names(directory / "jobs")),
        *_runs(campaign, attempts, node_half),
    ]
    if attempts and not node_half:
        found.append(Finding(str(campaign.node_half), "torn", "there are runs, and it is missing", RESTORE))
    if alive:
        found = [one for one in found if not is_temporary(Path(one.path).name)]
    else:
        found += _results(campaign)
    return Checked(directory, "campaign", tuple(sorted(set(found))), tuple(_notes(attempts, alive)))


def _names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir()) if directory.is_dir() else []


def _unrecorded(campaign: Campaign, attempts: list[RunDirectory]) -> set[str]:
    """Jobs with a run that has no record yet, or never will."""
    recorded = {one.run for one in attempts if (one.path / RUN_FILE).exists()}
    return {job.job for job, _, run in campaign.rows() if run.run not in recorded}


def _top(campaign: Campaign) -> Iterator[Finding]:
    for entry in sorted(campaign.directory.iterdir()):
        if entry.name in _IN_PASSING:
            yield Finding(str(entry), "torn", _IN_PASSING[entry.name], "gpubench fetch it again")
        elif is_temporary(entry.name):
            yield Finding(str(entry), "torn", "its writer died before the rename", REMOVE)
        elif entry.name not in _FILES | _FOLDERS or entry.is_symlink() or (entry.name in _FOLDERS) != entry.is_dir():
            yield Finding(str(entry), "foreign", "no campaign has such a file", MOVE)
    for folder in (campaign.directory / "plan.d", campaign.directory / "manifests", *campaign.directory.glob("jobs/*")):
        for name in _names(folder):
            if is_temporary(name):
                yield Finding(str(folder / name), "torn", "its writer died before the rename", REMOVE)
            elif folder.name == "plan.d" and name not in {f"{n + 1:03d}.json" for n in range(len(campaign.additions))}:
                yield Finding(str(folder / name), "foreign", "nobody appended it to the plan", MOVE)


def _runs(campaign: Campaign, attempts: list[RunDirectory], node_half: str) -> Iterator[Finding]:
    rows = {run.run: (job, block, run) for job, block, run in campaign.rows()}
    named = {one.path.name for one in attempts}
    for name in _names(campaign.runs_dir):
        if name not in named:
            path = str(campaign.runs_dir / name)
            if is_temporary(name):
                yield Finding(path, "torn", "whoever wrote it was killed", REMOVE)
            else:
                yield Finding(path, "foreign", "no run has such a name", MOVE)
    for one in attempts:
        if one.run not in rows:
            yield Finding(str(one.path), "foreign", "no run of the plan has that id", MOVE)
            continue
        try:
            yield from check_run(campaign.plan, rows[one.run], one, node_half)
        except OSError as error:
            yield Finding(str(one.path), "torn", f"can't be read: {error.strerror}", "see to its permissions")


def _results(campaign: Campaign) -> Iterator[Finding]:
    """What is derived is never read back; a table that was edited still fools whoever opens it."""
    verdicts = campaign.verdicts
    if verdicts.exists() and not str((read_object(verdicts) or {}).get("schema", "")).startswith(VERDICTS):
        yield Finding(str(verdicts), "torn", "it holds no verdicts", f"gpubench report {campaign.directory}")
    if not campaign.results.exists():
        return
    again = f"gpubench compare {campaign.directory}"
    try:
        table = pl.read_parquet(campaign.results)
    except (OSError, pl.exceptions.PolarsError):
        yield Finding(str(campaign.results), "torn", "it can't be read", again)
        return
    if dict(table.schema) != COLUMNS:
        yield Finding(str(campaign.results), "edited", "its columns aren't those of this gpubench", again)
        return
    merged = merge_directory(campaign.runs_dir).frame
    if not table.equals(merged):
        strange = table.join(merged, on=list(COLUMNS), how="anti", nulls_equal=True).height
        if strange:
            yield Finding(str(campaign.results), "edited", f"{strange} rows of it are of no run that is here", again)


def _notes(attempts: list[RunDirectory], alive: set[str]) -> Iterator[str]:
    if alive:
        yield f"job {', '.join(sorted(alive))} may still be running: what isn't there yet is no finding"
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
