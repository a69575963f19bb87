"""``gpubench calibrate``: a version against itself in many campaigns, judged by the gate."""

import contextlib
import dataclasses
import datetime as dt
import itertools
import json
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpubench import __version__
from gpubench.cli.campaign.display import require_complete
from gpubench.cli.campaign.lifecycle import missing_blocks, run_all
from gpubench.cli.campaign.options import CalibrateOptions, quantity
from gpubench.cli.campaign.planning import plan_campaign, read_wishes
from gpubench.cli.campaign.preflight import place_campaign, prepare
from gpubench.cli.say import say
from gpubench.cli.sites.profiles import expanded, load_site
from gpubench.errors import DataError, IncompleteError, InterruptedByUserError, UsageError
from gpubench.files import create_exclusively
from gpubench.model.image import parse_variant
from gpubench.model.quantities import parse_fraction
from gpubench.model.text import counted
from gpubench.store.calibrations import Calibration, keep_calibration
from gpubench.store.campaign import PLAN_FILE, Campaign

WISHES_FILE = "calibration.json"
SCHEMA = "gpubench/calibration-wishes/1"


def begin(wishes: CalibrateOptions, outputs: Path | None) -> Path:
    """Make ``<outputs>/calibration-<site>-<stamp>/`` with the wishes in it; raises UsageError.

    Two callers in the same second get two directories: the later one's name ends in ``-2``.
    """
    if wishes.slow:
        quantity("--slow", wishes.slow, parse_fraction)
    site = load_site(wishes.site, wishes.settings)
    ucx = wishes.ucx or parse_variant(site.defaults.variants[0]).ucx
    wishes = dataclasses.replace(
        wishes,
        ucx=ucx,
        slow="".join(wishes.slow.split()),  # "5 %", as percentages are written here, would be two words of a variant
        site=_absolute(wishes.site),
        suite=_absolute(wishes.suite),
        settings=wishes.settings or [],
    )
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    above, name = outputs or expanded(site.paths.outputs, "paths.outputs", site), f"calibration-{site.name}-{stamp}"
    read_wishes(wishes.asked(0, above / name))
    plain = {"schema": SCHEMA, **dataclasses.asdict(wishes)}
    for number in itertools.count(1):
        directory = above / (name if number == 1 else f"{name}-{number}")
        with contextlib.suppress(FileExistsError):
            create_exclusively(directory / WISHES_FILE, json.dumps(plain, indent=1) + "\n")
            return directory
    raise AssertionError("itertools.count never ends")


def calibrate(directory: Path, campaigns: int) -> None:
    """Run the missing ones of so many campaigns, judge all of them, print the result and keep it.

    Raises:
        UsageError: the directory holds no calibration.
        IncompleteError: not one campaign has a verdict.
        InterruptedByUserError: Ctrl-C; what was finished is judged and kept.
    """
    wishes = _read(directory)
    slowed = f", the candidate slowed by {wishes.slow}" if wishes.slow else ""
    say(f"calibration {directory}: {counted(campaigns, 'campaign')} of {wishes.ucx} against itself{slowed}")
    try:
        _run(wishes, directory, campaigns)
    except (InterruptedByUserError, KeyboardInterrupt) as stopped:
        word = stopped.what.partition(";")[0] if isinstance(stopped, InterruptedByUserError) else "interrupted"
        _conclude(wishes, directory, must=False)
        raise InterruptedByUserError(
            word, then=f"to go on: gpubench calibrate {directory} --campaigns {campaigns}"
        ) from None
    _conclude(wishes, directory, must=True)


def _run(wishes: CalibrateOptions, directory: Path, campaigns: int) -> None:
    there = _campaigns(directory)
    for number in range(max(campaigns, len(there))):
        if number < len(there):
            campaign, blocks = missing_blocks(there[number])
            if not blocks:
                continue
            place_campaign(campaign)
            run_all(campaign, blocks)
        else:
            campaign = plan_campaign(read_wishes(wishes.asked(number, directory)), quiet=number > 0)
            prepare(campaign)
            run_all(campaign, None)
        say(
            f"campaign {number + 1} of {campaigns}: {' '.join(_words(campaign)) or 'no verdict'} ({campaign.directory})"
        )


def _campaigns(directory: Path) -> list[Campaign]:
    return [Campaign.open(path.parent) for path in sorted(directory.glob(f"*/{PLAN_FILE}"))]


def _words(campaign: Campaign) -> list[str]:
    """The verdicts of a complete campaign; those of an unfinished one don't count."""
    # Late: scipy takes a second, which belongs behind the measurements.
    from gpubench.cli.results.judge import judge_campaign

    judged = judge_campaign(campaign)
    try:
        require_complete(campaign, judged.accounting)
    except IncompleteError:
        return []
    return [one.verdict for one in judged.verdicts]


def _conclude(wishes: CalibrateOptions, directory: Path, *, must: bool) -> None:
    from gpubench.report.inputs import calibration_sentence, slowed_words
    from gpubench.stats.proportions import tally

    campaigns = _campaigns(directory)
    judged = [(one, words) for one in campaigns if (words := _words(one))]
    if not judged:
        if must:
            raise IncompleteError(
                f"{directory}: no campaign has a verdict", then="gpubench status shows how the runs ended"
            )
        return
    counts = tally([words for _, words in judged])
    load, hosts = _circumstances([one for one, _ in judged])
    measured = Calibration(
        gpubench=__version__,
        measured_at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        suite=judged[0][0].plan.suite,
        ucx=wishes.ucx,
        blocks=wishes.blocks,
        slow=wishes.slow,
        campaigns=len(judged),
        alarms=counts.alarms.count,
        equivalent=counts.equivalent.count,
        regressions=counts.regressions.count,
        hosts=hosts,
        load=load.get("load"),
        steal=load.get("steal"),
        directory=str(directory.resolve()),
    )
    kept = keep_calibration(judged[0][0].plan.site.name, measured)
    told = Counter(word for _, words in judged for word in words)
    say("")
    each = ", ".join(f"{count} {word}" for word, count in sorted(told.items()))
    say(f"verdicts of {counted(len(judged), 'campaign')}: {each}")
    if len(judged) < len(campaigns):
        say(f"left out, without a verdict: {len(campaigns) - len(judged)}")
    say(f"{slowed_words(measured)}." if wishes.slow else calibration_sentence({"": measured}))
    say(f"kept in {kept}")


def _circumstances(campaigns: Sequence[Campaign]) -> tuple[dict[str, float], list[str]]:
    """Means of load and steal over all runs, and the hosts."""
    from gpubench.merge.explain import noise
    from gpubench.store.accounting import account
    from gpubench.store.rundirs import read_provenance

    outcomes = [one for campaign in campaigns for one in account(campaign).outcomes if one.directory]
    numbers = [noise(read_provenance(one.directory)) for one in outcomes if one.directory]
    means = {
        name: round(statistics.fmean(values), 3)
        for name in ("load", "steal")
        if (values := [one[name] for one in numbers if name in one])
    }
    return means, sorted({host for one in outcomes if one.record for host in one.record.hosts})


def _read(directory: Path) -> CalibrateOptions:
    path = directory / WISHES_FILE
    try:
        plain: dict[str, Any] = json.loads(path.read_bytes())
        if plain.pop("schema") != SCHEMA:
            raise ValueError
        return CalibrateOptions(**plain)
    except FileNotFoundError:
        raise UsageError(f"{directory} is no calibration: it has no {WISHES_FILE}") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{path} is damaged, or written by another gpubench", then="begin a new calibration") from None


def _absolute(name: str) -> str:
    """A profile or suite by its path is found from anywhere; a name stays a name."""
    return str(Path(name).resolve()) if name.endswith(".toml") else name
