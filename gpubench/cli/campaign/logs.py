"""Where the logs of a campaign are, and how those of its processes end."""

import zipfile
from pathlib import Path

from gpubench.cli.campaign.states import account_now
from gpubench.cli.say import say
from gpubench.errors import DataError, UsageError
from gpubench.model.base import nearest
from gpubench.model.text import counted
from gpubench.node.spec.records import LOGS_FILE
from gpubench.store.campaign import Campaign

TAIL = 15


def show_logs(campaign: Campaign, run: str | None) -> None:
    """The jobs' log files, then the last lines of the processes of one run, or of every run that failed."""
    outcomes = account_now(campaign).outcomes
    if run is not None and run not in {one.run.run for one in outcomes}:
        raise UsageError(f"{campaign.place} has no run '{run}'{nearest(run, [one.run.run for one in outcomes])}")
    for job in campaign.jobs:
        for path in sorted(campaign.job_dir(job.job).glob("*.log")):
            say(f"{campaign.shown(path)}  {path.stat().st_size} bytes")
    for one in outcomes:
        wanted = one.status != "ok" if run is None else one.run.run == run
        if wanted and one.directory:
            say("")
            say(f"{one.run.run} block {one.block.block} {one.run.variant}: {one.status}: {one.reason}")
            _show(campaign, one.directory / LOGS_FILE)


def _show(campaign: Campaign, path: Path) -> None:
    if not path.exists():
        say(f"  no {path.name}: the run left no record")
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                lines = archive.read(name).decode("utf-8", "replace").rstrip().splitlines()
                say(f"  {name}  ({campaign.shown(path)}, {counted(len(lines), 'line')})")
                for line in lines[-TAIL:]:
                    say(f"    {line}")
    except BrokenPipeError:
        raise  # of whoever reads what we say
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{campaign.shown(path)} can't be read: {error}") from None
