"""``gpubench fsck``: torn, foreign and edited files, one line each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from gpubench.cli.say import say
from gpubench.errors import DataError, GpubenchError, UsageError
from gpubench.fsck import Checked, check_campaign, check_import
from gpubench.importers.directory import NOTE, TABLE
from gpubench.schedulers import SCHEDULERS, TENDED, gathering, submitted
from gpubench.store.campaign import PLAN_FILE, Campaign

_OF_CAMPAIGNS = (PLAN_FILE, "runs", "plan.d", "node.pyz")
_OF_IMPORTS = (NOTE, TABLE)


def fsck(directories: Sequence[Path], *, as_json: bool) -> None:
    """Print every finding and what can't be proven; writes nothing.

    Raises:
        UsageError: a directory that holds no campaign and no import.
        typer.Exit: 3 where something was found.
    """
    checked = [_checked(one) for one in _places(directories)]
    if as_json:
        say(json.dumps({"schema": "gpubench/fsck/1", "checked": [one.plain() for one in checked]}, indent=1))
    else:
        for one in checked:
            for finding in one.findings:
                say(str(finding))
            for note in one.notes:
                say(f"{one.directory}: note: {note}")
            found = len(one.findings)
            say(f"{one.directory}: {one.what}, {found or 'no'} finding{'' if found == 1 else 's'}")
    if any(one.findings for one in checked):
        raise typer.Exit(DataError.exit_code)


def _places(given: Sequence[Path]) -> Iterator[Path]:
    for path in given:
        inside = [path] if _what(path) else sorted(filter(_what, path.glob("*")))
        if not inside:
            raise UsageError(f"{path} is no campaign and no import, and holds none", then="name some")
        yield from inside


def _what(path: Path) -> str:
    """``campaign`` or ``import``, also what was one before a file was lost; empty for anything else."""
    if any((path / name).exists() for name in _OF_CAMPAIGNS) and not (path / NOTE).exists():
        return "campaign"
    return "import" if any((path / name).is_file() for name in _OF_IMPORTS) else ""


def _checked(path: Path) -> Checked:
    return check_import(path) if _what(path) == "import" else check_campaign(path, _living)


def _living(campaign: Campaign, jobs: set[str]) -> set[str]:
    """Those that may still write. A scheduler that leaves work to whoever looks isn't asked: that would write."""
    word = campaign.plan.site.scheduler
    living = set()
    for job in sorted(jobs):
        directory = campaign.job_dir(job)
        try:
            if word in TENDED:
                if submitted.read(directory) is not None and not gathering.complete(directory):
                    living.add(job)
            elif SCHEDULERS[word].state(directory).phase in ("pending", "running", "unknown"):
                living.add(job)
        except GpubenchError:
            living.add(job)
    return living
