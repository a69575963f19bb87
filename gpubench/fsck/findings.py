"""Findings, in words."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any, Literal

from gpubench.model.plan import Plan, PlannedBlock, PlannedJob, PlannedRun
from gpubench.spec.plain import parse_json
from gpubench.store.rundirs import is_temporary

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
