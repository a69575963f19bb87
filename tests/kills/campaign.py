"""A small real campaign that is killed at one point, resumed until it is done, and looked at: is all of it there?

As a program: ``python -m tests.kills.campaign --seed 7 --moments 60 --calls`` prints a table of kill points.
"""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import itertools
import os
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import is_temporary, read_record, run_directories
from tests.cli.campaigns import Front, cluster_processes, until, words, write_suite
from tests.conftest import own_queue, run_gpubench
from tests.kills.points import ERRORS, Call, Fault, Full, Point, moments

VARIANTS = "a=1.22.0 b=1.22.0,MALLOC_ARENA_MAX=2"
TRIES = 3
"""Commands until a campaign is done: the first may find that a process of the killed one still ends."""


@dataclasses.dataclass
class Seen:
    """What happened at a point, and what is wrong with what came out; ``struck`` is empty where nothing was killed."""

    point: Point
    struck: str
    happened: list[str]
    faults: list[str]

    def __str__(self) -> str:
        return (
            f"| {self.point} | {self.struck or 'nothing: it had ended'} | {'; '.join(self.happened)} | "
            + ("; ".join(self.faults) or "all is there")
            + " |"
        )


def undisturbed(directory: Path) -> Counter[tuple[Any, ...]]:
    """The table of a campaign that nobody kills."""
    front = Front(directory, *_words(directory), env=_env(directory))
    assert front.end() == 0, front.output
    (campaign,) = _campaigns(directory)
    return _table(campaign)


def kill(point: Point, directory: Path, expected: Counter[tuple[Any, ...]], *, interleaved: bool = False) -> Seen:
    """Start a campaign in the empty ``directory``, kill it at the point, resume it until it is done, and look."""
    planned = [*_words(directory), *(["--arrangement", "interleaved"] if interleaved else [])]
    front = point.start(directory, planned, _env(directory))
    struck = point.strike(front)
    code = front.end()
    seen = Seen(point, struck, [f"bench ended with {code}"], [])
    seen.faults += _bugs(front.output)
    for _ in range(TRIES):
        campaigns = _campaigns(directory)
        asked = ["bench", "--campaign", str(campaigns[0])] if campaigns else planned
        done = run_gpubench(asked, directory, {**own_queue(directory), **_env(directory)}, one_stream=True)
        seen.happened.append(f"{asked[0]} {done.returncode}")
        seen.faults += _bugs(done.stdout)
        if done.returncode == 0:
            break
        seen.happened[-1] += f" ({done.stdout.strip().splitlines()[-1][:200]})"
    else:
        seen.faults.append("not done")
    campaigns = _campaigns(directory)
    if len(campaigns) == 1:
        seen.faults += _faults(seen, campaigns[0], directory, expected)
    else:
        seen.faults.append(f"{len(campaigns)} campaigns")
    point.over(directory)
    return seen


def _words(directory: Path) -> list[str]:
    return words(write_suite(directory, reps=2, count=20), "--blocks", "1", variants=VARIANTS)


def _env(directory: Path) -> dict[str, str]:
    (directory / "scratch").mkdir(exist_ok=True)
    return {"TMPDIR": str(directory / "scratch")}


def _campaigns(directory: Path) -> list[Path]:
    return sorted(path.parent for path in directory.glob("outputs/*/plan.json"))


def _bugs(output: str) -> list[str]:
    return [line for line in output.splitlines() if "a bug in gpubench" in line or line.startswith("Traceback")]


def _faults(seen: Seen, directory: Path, home: Path, expected: Counter[tuple[Any, ...]]) -> Iterator[str]:
    point = seen.point
    campaign = Campaign.open(directory)
    replaced = {block.replaces for job in campaign.jobs for block in job.blocks}
    for one in account(campaign).outcomes:
        if one.status == "failed" and point.explains(one.reason):
            seen.happened.append(f"{one.run.variant} failed: {one.reason}")
            expected = Counter({row: count for row, count in expected.items() if one.run.variant not in row})
        elif one.block.block not in replaced and one.status != "ok":
            yield f"block {one.block.block} {one.run.variant}: {one.status}: {one.reason}"
    oks = Counter(
        one.run
        for one in run_directories(campaign.runs_dir)
        if (record := read_record(one.path)) and record.status == "ok"
    )
    yield from (f"run {run} is ok {times} times" for run, times in oks.items() if times > 1)
    checked = run_gpubench(["results", "fsck", str(directory)], home, own_queue(home), one_stream=True)
    if checked.returncode or "no findings" not in checked.stdout:
        yield f"fsck: {checked.stdout.strip()}"
    found = _table(directory)
    if found != expected:
        yield f"the table has {dict(found - expected)} more, and lacks {dict(expected - found)}"
    yield from _left(directory, home)


def _left(directory: Path, home: Path) -> Iterator[str]:
    """Processes, temporary files, scratch directories and locks that are still there."""
    try:
        until(lambda: not cluster_processes(directory), "the last process", timeout=30)
    except AssertionError:
        yield f"processes {cluster_processes(directory)}"
    yield from (f"left: {path.relative_to(home)}" for path in (home / "scratch").iterdir())
    yield from (f"left: {path.relative_to(home)}" for path in directory.rglob(".*") if is_temporary(path.name))
    for lock in (directory, *home.glob("state/**/*.lock")):
        handle = os.open(lock, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield f"locked: {lock.relative_to(home)}"
        finally:
            os.close(handle)


def _table(directory: Path) -> Counter[tuple[Any, ...]]:
    """How many samples of ok runs each cell has in blocks that stand; what differs between two is left out."""
    campaign = Campaign.open(directory)
    replaced = {block.replaces for job in campaign.jobs for block in job.blocks if block.replaces}
    stands = ~pl.col("block").is_in(sorted(replaced)) & (pl.col("run_status") == "ok")
    frame = pl.read_parquet(campaign.results).filter(stands)
    columns = ["workload", "backend", "params", "variant", "nodes", "workers_per_node", "protocol", "warmup", "rep"]
    return Counter(frame.select(columns).iter_rows())


def all_calls(
    role: str, call: str, directory: Path, expected: Counter[tuple[Any, ...]], *, first: int = 1, error: str = ""
) -> Iterator[Seen]:
    """The ``first`` such call of the role, the one behind it, and so on, until nobody makes so many.

    ``error``: they fail with it and kill nobody; ``any``: with one of ``ERRORS`` after the other.
    """
    for number in range(first, 1000):
        place = directory / f"{role.replace(' ', '-')}-{call}-{number}-{error}"
        place.mkdir()
        named = ERRORS[number % len(ERRORS)] if error == "any" else error
        seen = kill(Fault(role, call, number, named) if error else Call(role, call, number), place, expected)
        yield seen
        if not seen.struck:
            return


def full(role: str, steps: int, most_kib: int, directory: Path, expected: Counter[tuple[Any, ...]]) -> Iterator[Seen]:
    """A file system of ``most_kib / steps`` KiB, of twice as many, and so on."""
    for step in range(1, steps + 1):
        place = directory / f"full-{role}-{step}"
        place.mkdir()
        yield kill(Full(role, most_kib * step // steps), place, expected)


def main() -> None:
    """Print a line for each point; the exit code is 1 where something was lost or left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--moments", type=int, default=12)
    parser.add_argument("--calls", nargs="*", default=[], help="every such call: 'front end:rename' job.sh:fsync:7 ...")
    parser.add_argument(
        "--errors", nargs="*", default=[], help="every such call fails: 'front end:rename:1:EIO', or :any"
    )
    parser.add_argument(
        "--full", nargs="*", default=[], help="directories that are full: outputs:STEPS:KIB scratch:..."
    )
    parser.add_argument(
        "--interleaved", action="store_true", help="kill the moments' campaigns with all clusters alive"
    )
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        home = Path(folder)
        (home / "undisturbed").mkdir()
        expected = undisturbed(home / "undisturbed")

        def by_moment() -> Iterator[Seen]:
            for number, point in enumerate(moments(options.seed, options.moments, interleaved=options.interleaved)):
                (home / str(number)).mkdir()
                yield kill(point, home / str(number), expected, interleaved=options.interleaved)

        asked = [(*one.split(":"), "1")[:3] for one in options.calls]
        calls = (all_calls(role, call, home, expected, first=int(first)) for role, call, first in asked)
        failing = [one.split(":") for one in options.errors]
        errors = (
            all_calls(role, call, home, expected, first=int(first), error=error) for role, call, first, error in failing
        )
        filled = [one.split(":") for one in options.full]
        fulls = (full(role, int(steps), int(kib), home, expected) for role, steps, kib in filled)
        for seen in itertools.chain(by_moment(), *calls, *errors, *fulls):
            print(seen, flush=True)
            wrong += bool(seen.faults)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
