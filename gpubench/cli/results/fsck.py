"""``gpubench results fsck``: torn, foreign and edited files, one line each."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import typer

from gpubench.cli.results.open_target import root_of, unpacked
from gpubench.cli.say import say, say_text, warn
from gpubench.errors import DataError, GpubenchError, UsageError
from gpubench.fsck import MOVE, Checked, Finding, check_campaign, check_import
from gpubench.importers.directory import NOTE, TABLE
from gpubench.model.text import counted
from gpubench.render.check import FACTS
from gpubench.schedulers import POLLED, SCHEDULERS, pod_log_collector, submitted
from gpubench.store.campaign import PLAN_FILE, Campaign
from gpubench.store.packs import HOMES_REPLACED, SUFFIX, faults, unknown

ANEW = "pack it again, or ask whoever packed it"
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
        say_text(json.dumps({"schema": "gpubench/fsck/1", "checked": [one.plain() for one in checked]}, indent=1))
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


def _places(given: Sequence[Path]) -> list[Path]:
    """The paths to check; of several directories (a shell's ``*``), those without results are reported and left out."""
    places, without = [], []
    for path in given:
        if not path.exists():
            raise UsageError(f"there is no {path}", then="name campaigns, imports and packs")
        root = path if _what(path) else root_of(path)
        inside = [root] if root.is_file() or _what(root) else sorted(filter(_what, path.glob("*")))
        places += inside
        if not inside:
            without.append(path)
    if not places:
        none = ", ".join(map(str, without))
        raise UsageError(f"{none}: neither a campaign nor an import, and holds none", then="name some")
    for path in without:
        warn(f"{path} is left out: it is neither a campaign nor an import, and holds none")
    return places


def _what(path: Path) -> str:
    """``campaign`` or ``import`` (even if its main file was lost), or ``pack``; empty for anything else."""
    if path.is_file():
        return "pack" if path.name.endswith(SUFFIX) else ""
    if (path / FACTS).is_dir() and not (path / PLAN_FILE).exists():
        return ""  # of `sites check --live` or `sites clean`
    if any((path / name).exists() for name in _OF_CAMPAIGNS) and not (path / NOTE).exists():
        return "campaign"
    return "import" if any((path / name).is_file() for name in _OF_IMPORTS) else ""


def _checked(path: Path) -> Checked:
    if path.is_file():
        return check_pack(path)
    return check_import(path) if _what(path) == "import" else check_campaign(path, _living)


def check_pack(path: Path) -> Checked:
    """Check the archive against its list, then its content; nothing is written to a pack."""
    try:
        wrong = [Finding(f"{path}:{name}", "edited", what, ANEW) for name, what in faults(path)]
        if wrong:
            return Checked(path, "pack", tuple(wrong), ())
        pack, directory = unpacked(path)
    except DataError as error:
        return Checked(path, "pack", (Finding(str(path), "torn", error.what, error.then or ANEW),), ())
    inside = check_import(directory) if pack.index.what == "import" else check_campaign(directory, lambda *_: set())
    findings = [
        dataclasses.replace(one, path=f"{path}:{one.path[len(str(directory)) + 1 :]}") for one in inside.findings
    ]
    findings += [
        Finding(f"{path}:{name}", "foreign", f"no {pack.index.what} has such a file: it isn't unpacked", MOVE)
        for name in sorted(unknown(pack.index))
    ]
    missing = pack.index.missing
    lacks = f"{counted(len(missing), 'planned run')} {'is' if len(missing) == 1 else 'are'} missing, the first: "
    notes = [lacks + missing[0]] if missing else []
    notes += [HOMES_REPLACED] * pack.index.homes_replaced
    return Checked(path, f"packed {inside.what}", tuple(findings), (*inside.notes, *notes))


def _living(campaign: Campaign, jobs: set[str]) -> set[str]:
    """Jobs that may still write. A scheduler whose status query submits jobs isn't asked, because that writes."""
    word = campaign.plan.site.scheduler
    living = set()
    for job in sorted(jobs):
        directory = campaign.job_dir(job)
        try:
            if word in POLLED:
                if submitted.read(directory) is not None and not pod_log_collector.complete(directory):
                    living.add(job)
            elif not SCHEDULERS[word].state(directory).over:
                living.add(job)
        except GpubenchError:
            living.add(job)
    return living
