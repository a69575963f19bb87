"""``gpubench fetch``: copy a campaign by rsync, repeatedly if wanted, while the original grows."""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gpubench.cli.campaign.display import counts
from gpubench.cli.campaign.running import account_now
from gpubench.cli.say import say
from gpubench.errors import DataError, MissingToolError, SchedulerError, UsageError
from gpubench.files import locked, writing
from gpubench.model.site import Site
from gpubench.spec.records import DATA_FOLDER, RUN_FILE
from gpubench.store.campaign import DERIVED, PLAN_FILE, Campaign

STAGE = ".fetch"
"""Folder in the copy for records whose run's other files have not been copied yet."""
PARTIAL = ".rsync-partial"
SILENCE_S = 120
SSH = "ssh -o ConnectTimeout=20 -o ServerAliveInterval=15"
_REMOTE = re.compile(r"[^/:]+:.+")


def fetch(site: Site, campaign: str, outputs: Path) -> Campaign:
    """Copy a campaign of ``site`` below ``outputs``, or bring the copy up to date.

    A run's record is put in its place after everything else of that run, as on the nodes, so a copy that is read or
    interrupted at any moment never shows a run as finished too early. Derived files are made again here.

    Args:
        campaign: name below the profile's ``fetch.path``, or a path of its own: ``HOST:PATH`` or a local one.

    Raises:
        UsageError: no such campaign there, another one of that name here, a path without a name, or the profile
            says not where to look.
        MissingToolError: no rsync here, the disk is full.
        SchedulerError: the host doesn't answer, or the connection broke; what has come is kept.
    """
    source = _source(site, campaign)
    name = source.rstrip("/").rpartition("/")[2].rpartition(":")[2]
    if name in ("", ".", ".."):
        raise UsageError(f"{source} doesn't end in the name of a campaign", then="write it like HOST:PATH/NAME")
    copy = outputs / name
    with writing(copy):
        copy.mkdir(parents=True, exist_ok=True)
    try:
        with locked(copy, wait=False) as lock:
            try:
                _bring(source, copy, lock)
            finally:
                with contextlib.suppress(OSError):
                    copy.rmdir()  # nothing came
    except BlockingIOError:
        raise UsageError(f"another gpubench fetches into {copy}, or works on it", then="wait for its end") from None
    fetched = Campaign.open(copy)
    accounting = account_now(fetched)
    say(f"{copy}: {counts(accounting)} of {len(accounting.outcomes)} runs, from {source}")
    return fetched


def _source(site: Site, campaign: str) -> str:
    if _REMOTE.fullmatch(campaign):
        return campaign
    if "/" in campaign or Path(campaign).is_dir():
        return str(Path(campaign).expanduser().resolve())
    place = site.fetch
    if not place.path:
        raise UsageError(
            f"site {site.name} doesn't name the directory of its campaigns",
            then="set fetch.host and fetch.path in the profile, or name the campaign as HOST:PATH",
        )
    path = f"{place.path.rstrip('/')}/{campaign}"
    return f"{place.host}:{path}" if place.host else str(Path(path).expanduser().resolve())


def _bring(source: str, copy: Path, lock: int) -> None:
    stage = copy / STAGE
    shutil.rmtree(stage, ignore_errors=True)
    with writing(stage):
        stage.mkdir()
    try:
        # First the records of runs that are finished by now: what they speak of is whole at the source.
        wanted = [f"/{PLAN_FILE}", "/runs/", "/runs/*/", f"/runs/*/{RUN_FILE}"]
        filters = [*(f"--include={path}" for path in wanted), "--exclude=*", "--prune-empty-dirs"]
        _rsync([*filters, f"--compare-dest={copy.resolve()}"], source, stage, lock)
        _refuse_another(source, stage, copy)
        passing = [f"/{STAGE}", PARTIAL, ".*.tmp", ".rendezvous-*"]
        left_out = [*passing, f"/{DATA_FOLDER}", f"/runs/*/{RUN_FILE}", *(f"/{name}" for name in DERIVED)]
        kept = [f"--partial-dir={PARTIAL}", "--delay-updates"]
        _rsync([*kept, *(f"--exclude={path}" for path in left_out)], source, copy, lock)
        for record in sorted(stage.glob(f"runs/*/{RUN_FILE}")):
            with writing(copy):
                record.replace(copy / record.relative_to(stage))
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _refuse_another(source: str, stage: Path, copy: Path) -> None:
    new, old = stage / PLAN_FILE, copy / PLAN_FILE
    if not new.exists() and not old.exists():
        raise UsageError(f"{source} is no campaign: it has no {PLAN_FILE}")
    if new.exists() and old.exists() and new.read_bytes() != old.read_bytes():
        raise UsageError(f"{copy} holds another campaign than {source}", then="name another --outputs")


def _rsync(options: Sequence[str], source: str, target: Path, lock: int) -> None:
    """Times are kept, owners are not; ``--secluded-args``: no shell at the other end reads the path.

    It holds the copy's lock, too: it continues if we are killed, and the next fetch must not run at the same time.
    """
    common = ["rsync", "-rlt", "--protect-args", f"--timeout={SILENCE_S}", *options]
    try:
        done = subprocess.run(
            [*common, "--", f"{source.rstrip('/')}/", f"{target.resolve()}/"],
            env={"RSYNC_RSH": SSH, **os.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            pass_fds=(lock,),
        )
    except (FileNotFoundError, PermissionError):
        raise MissingToolError("there is no rsync on this machine", then="install it; the site needs it too") from None
    if done.returncode in _GONE_MEANWHILE or done.returncode == 0:
        return
    said = " ".join(done.stderr.split())[:300]
    if done.returncode == _PARTIAL and "No such file or directory" in done.stderr:
        raise UsageError(f"there is no campaign {source} ({said})")
    if done.returncode == _FILE_IO:
        raise MissingToolError(f"can't write {target}: {said}", then="free some space there, then fetch again")
    if done.returncode == _PARTIAL:
        raise DataError(f"not everything of {source} could be read: {said}", then="check its permissions")
    raise SchedulerError(
        f"rsync from {source} ended with {done.returncode}: {said}",
        then="the files that arrived are kept; the same command continues from there",
    )


# rsync(1), EXIT VALUES. Files may vanish between the list and the copy: temporary ones of a campaign that runs.
_FILE_IO, _PARTIAL, _GONE_MEANWHILE = 11, 23, (24,)
