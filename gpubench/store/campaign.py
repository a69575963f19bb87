"""Campaigns on disk: where the files of one stand, its plan with all that was appended, a new one, and the newest."""

import dataclasses
import datetime as dt
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpubench.errors import DataError, PlanRefusedError, UsageError
from gpubench.files import create_exclusively, reading, write_atomically, writing
from gpubench.model.image import manifest_id
from gpubench.model.plan import Plan, PlanAddition, PlannedBlock, PlannedJob, PlannedRun
from gpubench.node.spec.plain import parse_json
from gpubench.node.spec.records import RUN_FILE

PLAN_FILE = "plan.json"
SEARCH_FILE = "bisect.json"
"""What makes a directory a search; the campaigns of its steps lie below it."""


@dataclasses.dataclass(frozen=True)
class Campaign:
    """A campaign as read from ``directory``. ``additions`` are in the order in which they were appended."""

    directory: Path
    plan: Plan
    additions: tuple[PlanAddition, ...] = ()

    @staticmethod
    def open(directory: Path) -> "Campaign":
        """Read ``plan.json`` and ``plan.d/``.

        Raises:
            UsageError: ``directory`` holds no plan.
            DataError: a plan file is damaged or missing in the middle, or a run is planned twice.
        """
        source = directory / PLAN_FILE
        with reading(source):
            if not source.is_file():
                why = f"it has no {PLAN_FILE}" if directory.exists() else "it doesn't exist"
                raise UsageError(f"{directory} is no campaign: {why}")
            plan = Plan.parse(source.read_bytes(), str(source))
        campaign = Campaign(directory, plan, tuple(_additions(directory / "plan.d")))
        campaign._refuse_twins()
        return campaign

    @staticmethod
    def begin(directory: Path, plan: Plan) -> "Campaign":
        """Write ``plan`` as the plan of the (empty) campaign directory.

        Raises:
            UsageError: there is a plan already; a plan is never rewritten.
            MissingToolError: the file can't be written.
        """
        try:
            create_exclusively(directory / PLAN_FILE, plan.dump())
        except FileExistsError:
            raise UsageError(f"{directory} already holds a campaign", then="name another directory") from None
        return Campaign(directory, plan)

    def append(self, addition: PlanAddition) -> "Campaign":
        """Append blocks to the plan as it was when this campaign was opened.

        Raises:
            PlanRefusedError: somebody else appended since, so this addition rests on an outdated plan.
            MissingToolError: the file can't be written.
        """
        path = self.directory / "plan.d" / f"{len(self.additions) + 1:03d}.json"
        appended = dataclasses.replace(self, additions=(*self.additions, addition))
        appended._refuse_twins()
        try:
            create_exclusively(path, addition.dump())
        except FileExistsError:
            raise PlanRefusedError(
                f"another gpubench has just appended {path}", then="run the command again when that one is done"
            ) from None
        return appended

    @property
    def jobs(self) -> list[PlannedJob]:
        """Every planned job, appended ones last."""
        return [*self.plan.jobs, *(job for addition in self.additions for job in addition.jobs)]

    @property
    def whole_plan(self) -> Plan:
        """The plan with the jobs of all additions."""
        return self.plan.model_copy(update={"jobs": self.jobs})

    def rows(self) -> Iterator[tuple[PlannedJob, PlannedBlock, PlannedRun]]:
        """Every planned run, in the order in which it is planned to run."""
        return self.whole_plan.runs()

    @property
    def runs_dir(self) -> Path:
        """Where the node half writes ``<run>-<attempt>/``."""
        return self.directory / "runs"

    @property
    def results(self) -> Path:
        return self.directory / "results.parquet"

    @property
    def verdicts(self) -> Path:
        return self.directory / "verdicts.json"

    @property
    def report(self) -> Path:
        return self.directory / "report.html"

    @property
    def summary(self) -> Path:
        """The same in Markdown, for a pull request."""
        return self.directory / "report.md"

    @property
    def node_half(self) -> Path:
        """The packed node half that every run of the campaign imports."""
        return self.directory / "node.pyz"

    def job_dir(self, job: str) -> Path:
        """Script, run specs, id and states of one job."""
        return self.directory / "jobs" / job

    def manifest_path(self, manifest: str) -> Path:
        """Package list and content hashes of one image."""
        return self.directory / "manifests" / f"{manifest}.json"

    def write_manifest(self, manifest: str, content: Any) -> None:
        """Store an image's manifest once; the same hash is the same content."""
        path = self.manifest_path(manifest)
        if not path.exists():
            write_atomically(path, json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")

    def manifests(self) -> dict[str, Any]:
        """Every manifest by its hash. Raises DataError naming one of a planned image that is gone, or a damaged one."""
        planned = {variant.image.manifest for variant in self.plan.variants if variant.image} - {""}
        stored = {path.stem for path in (self.directory / "manifests").glob("*.json")}
        return {manifest: _manifest(self.manifest_path(manifest)) for manifest in sorted(planned | stored)}

    def _refuse_twins(self) -> None:
        seen: set[str] = set()
        for _, block, run in self.rows():
            if run.run in seen:
                raise DataError(f"{self.directory}: run {run.run} (block {block.block}) is planned twice")
            seen.add(run.run)


def _additions(directory: Path) -> Iterator[PlanAddition]:
    for number, path in enumerate(sorted(directory.glob("[0-9]*.json")), start=1):
        if path.stem != f"{number:03d}":
            raise DataError(f"{directory / f'{number:03d}.json'} is missing", then="restore it from a copy")
        with reading(path):
            yield PlanAddition.parse(path.read_bytes(), str(path))


def _manifest(path: Path) -> dict[str, Any]:
    then = "restore it from a copy of the campaign"
    try:
        with reading(path):
            document = parse_json(path.read_bytes())
            whole = isinstance(document, dict) and manifest_id(document) == path.stem
    except FileNotFoundError:
        raise DataError(f"{path} is gone", then=then) from None
    except ValueError:
        raise DataError(f"{path} is cut off or not JSON", then=then) from None
    if not whole:
        raise DataError(f"{path} isn't what was written: its name is another hash", then=then)
    return dict(document)


def require_place(directory: Path) -> None:
    """See that a directory can be there: it, or the first of its parents that exists, is one.

    Raises:
        UsageError: it is a file.
    """
    ancestor = next((path for path in (directory, *directory.parents) if os.path.lexists(path)), directory)
    if os.path.exists(ancestor) and not os.path.isdir(ancestor):  # noqa: PTH110, PTH112 - pathlib raises without permission
        raise UsageError(f"{ancestor} is a file, not a directory", then="name another one")


def create_campaign(outputs: Path, site: str, suite: str, now: dt.datetime) -> Path:
    """Make the empty directory ``outputs/<site>-<suite>-<UTC stamp>``; its name is the campaign's.

    Two callers in the same second get two directories: the later one's name ends in ``-2``.

    Raises:
        MissingToolError: ``outputs`` can't be made or written.
    """
    stamp = now.astimezone(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    name = f"{site}-{suite}-{stamp}"
    for number in itertools.count(1):
        directory = outputs / (name if number == 1 else f"{name}-{number}")
        try:
            with writing(directory):
                outputs.mkdir(parents=True, exist_ok=True)
                directory.mkdir()
        except FileExistsError:
            require_place(outputs)
            continue
        return directory
    raise AssertionError("itertools.count ends never")


def newest_campaign(outputs: Path, *, with_results: bool = False) -> Path:
    """The campaign that was planned last, by the time that its plan states (a copy has another date on disk).

    Args:
        with_results: pass over campaigns of which no run has ended, and over those of one run (of ``measure``) where
            there are others.

    Raises:
        UsageError: there is no campaign, or none of them has results.
    """
    plans = sorted(outputs.glob(f"*/{PLAN_FILE}"), key=lambda path: (_planned_at(path), path.parent.name))
    if not plans:
        raise UsageError(f"there is no campaign in {outputs}", then="start one, or name a directory")
    newest = plans[-1].parent
    if with_results:
        plans = [plan for plan in plans if any(plan.parent.glob(f"runs/*/{RUN_FILE}"))]
        if not plans:
            raise UsageError(f"no campaign in {outputs} has results yet", then=f"see gpubench status {newest}")
        plans = [plan for plan in plans if not _has_one_run(plan)] or plans
    return plans[-1].parent


def _has_one_run(plan: Path) -> bool:
    try:
        jobs = parse_json(plan.read_bytes())["jobs"]
        runs = sum(len(block["runs"]) for job in jobs for block in job["blocks"])
        return runs == 1 and not (plan.parent / "plan.d").exists()
    except (ValueError, KeyError, TypeError, OSError):
        return False  # opening it says what is wrong with it


def _planned_at(plan: Path) -> float:
    try:
        created_at = str(parse_json(plan.read_bytes())["created_at"])
        return dt.datetime.fromisoformat(created_at).timestamp()
    except (ValueError, KeyError, TypeError, OSError):
        # A damaged plan keeps its place in time: if it is the newest, opening it says what is wrong with it.
        return plan.stat().st_mtime
