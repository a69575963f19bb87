"""The directory of campaigns (``outputs/``): a new campaign in it, and the newest."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from pathlib import Path

from gpubench.errors import UsageError
from gpubench.files import writing
from gpubench.spec.records import RUN_FILE
from gpubench.store.campaign import PLAN_FILE


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
            if not outputs.is_dir():
                raise UsageError(f"{outputs} is a file, not a directory", then="name another one") from None
            continue
        return directory
    raise AssertionError("itertools.count ends never")


def newest_campaign(outputs: Path, *, with_results: bool = False) -> Path:
    """The campaign that was planned last, by the time that its plan states (a copy has another date on disk).

    Args:
        outputs: directory of campaigns.
        with_results: pass over campaigns of which no run has ended.

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
    return plans[-1].parent


def _planned_at(plan: Path) -> float:
    try:
        created_at = str(json.loads(plan.read_bytes())["created_at"])
        return dt.datetime.fromisoformat(created_at).timestamp()
    except (ValueError, KeyError, TypeError, OSError):
        # A damaged plan keeps its place in time: if it is the newest, opening it says what is wrong with it.
        return plan.stat().st_mtime
