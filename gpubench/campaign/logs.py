"""Where the logs of a campaign are, and how those of its processes end."""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from gpubench.errors import DataError, UsageError
from gpubench.model.base import nearest
from gpubench.model.text import counted
from gpubench.node.spec.records import LOGS_FILE, RUN_FILE
from gpubench.store.accounting import PENDING
from gpubench.store.campaign import Campaign
from gpubench.store.states import account_now

TAIL = 15
_CRASH = re.compile(r".*Caught signal \d|Fatal Python error: ")
"""The line of a crash, by UCX or by Python; the frames behind it tell the cause, and the end of the log doesn't."""


def log_lines(campaign: Campaign, run: str | None) -> Iterator[str]:
    """The jobs' log files, then the last lines of the processes of one run, or of all that aren't ok throughout."""
    outcomes = account_now(campaign).outcomes
    if run is not None and run not in {result.run.run for result in outcomes}:
        near = nearest(run, [result.run.run for result in outcomes])
        raise UsageError(f"{campaign.directory} has no run '{run}'{near}")
    for job in campaign.jobs:
        for path in sorted(campaign.job_dir(job.job).glob("*.log")):
            yield f"{path}  {path.stat().st_size} bytes"
    for result in outcomes:
        shown = result.status != "ok" or result.in_part if run is None else result.run.run == run
        if shown and result.directory:
            yield ""
            yield f"{result.run.run} block {result.block.block} {result.run.variant}: {result.status}: {result.why}"
            if result.status != PENDING:  # a run keeps its logs when it ends
                yield from _last_lines(result.directory / LOGS_FILE)


def _last_lines(path: Path) -> Iterator[str]:
    if not path.exists():
        yield f"  no {path.name}: {'it is gone' if (path.parent / RUN_FILE).exists() else 'the run left no record'}"
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                lines = archive.read(name).decode("utf-8", "replace").rstrip().splitlines()
                yield f"  {name}  ({path}, {counted(len(lines), 'line')})"
                crash = next((number for number, line in enumerate(lines) if _CRASH.match(line)), len(lines) - TAIL)
                for line in lines[max(crash, 0) :][:TAIL]:
                    yield f"    {line}"
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} can't be read: {error}") from None
