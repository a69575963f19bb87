"""What ``gpubench calibrate`` measured on each site: one small JSON file per site in the user's state directory.

``<state>/calibration/<site>.json``, where ``<state>`` is ``~/.local/state/gpubench`` (or below ``XDG_STATE_HOME``):
a measured rate belongs to a site and outlives the campaigns that it was measured on.
"""

import dataclasses
import datetime as dt
import json
import re
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from gpubench.files import locked, write_atomically, writing

SCHEMA = "gpubench/calibration/1"


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Campaigns of a version against itself, and what the gate said of them.

    ``slow`` is empty, or by how much the candidate was slowed (``5%``). Of ``campaigns`` so many raised an alarm (any
    verdict but equivalent and inconclusive), were equivalent throughout, had a regression. ``load`` is the mean load
    average of the runs, ``steal`` per cent; None where not recorded.
    """

    gpubench: str
    measured_at: str
    suite: str
    ucx: str
    blocks: int
    slow: str
    campaigns: int
    alarms: int
    equivalent: int
    regressions: int
    hosts: list[str]
    load: float | None
    steal: float | None
    directory: str


def calibration_file(site: str) -> Path:
    """Where a site's calibrations stand."""
    return (
        Path(platformdirs.user_state_dir("gpubench")) / "calibration" / f"{re.sub(r'[^A-Za-z0-9._-]', '_', site)}.json"
    )


def read_calibrations(site: str) -> dict[str, Calibration]:
    """The latest of each kind by ``slow``; empty where there is none, or none that this version can read."""
    return _read(calibration_file(site)) or {}


def _read(path: Path) -> dict[str, Calibration] | None:
    """None where there is a file that this version can't read."""
    try:
        plain = json.loads(path.read_bytes())
        if plain["schema"] != SCHEMA:
            return None
        return {one["slow"]: Calibration(**one) for one in plain["calibrations"]}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_calibration(site: str, measured: Calibration) -> Path:
    """Replace the site's calibration of the same kind; the file.

    One that this version can't read (damaged, or of a newer gpubench) is renamed: ``<site>.json.unreadable-<stamp>``.
    Raises MissingToolError where the file can't be written.
    """
    path = calibration_file(site)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):  # another command may keep its own at the same moment
        before = _read(path)
        if before is None:
            with writing(path):
                path.rename(path.with_name(f"{path.name}.unreadable-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%SZ}"))
        kept: Mapping[str, Calibration] = {**(before or {}), measured.slow: measured}
        rows = [dataclasses.asdict(kept[slow]) for slow in sorted(kept)]
        write_atomically(path, json.dumps({"schema": SCHEMA, "site": site, "calibrations": rows}, indent=1) + "\n")
    return path
