"""A small real campaign that is killed at one point, resumed until it is done, and looked at: is all of it there?"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import polars as pl

from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import is_temporary, read_record, run_directories
from tests.cli.campaigns import Front, cluster_processes, nothing_left, until, words, write_suite
from tests.conftest import own_queue, run_gpubench
from tests.kills.points import ERRORS, LONGEST_S, Call, Fault, Full, Point
from tests.kills.slurm_points import SlurmPoint
from tests.slurm.campaigns import copy_images
from tests.slurm.cluster import SlurmCluster
from tests.slurm.test_campaigns import left_on

VARIANTS = "a=1.22.0 b=1.22.0,MALLOC_ARENA_MAX=2"
ANSWER = (
    *("workload", "backend", "params_id", "nodes", "workers_per_node", "protocol", "baseline", "candidate"),
    *("blocks", "samples", "verdict", "reason"),
)
"""Of a verdict, what times don't change: one block decides nothing."""
ANSWERS = "answers"
PAGE = "page"
NO_TEXT = re.compile(r"<(script|style|svg)\b.*?</\1>|<[^>]+>", re.DOTALL)
NUMBERS = re.compile(
    r"\S*-\d{8}T\d{6}Z\S*|[-+−±]?\d+(?:[.:,/-]\d+)*(?:T\S+|e-?\d+)?(?:\s?(?:%|[mµ]?s|[KMG]?i?B|[mh]\d+[sm]|m|h)\b)?"
)
OF_TIMES = re.compile(r"attempt|load|stolen|speed|straggler|noise|^all:$|^# \(worker#\)$|^[^a-z]*$")
"""Lines of a page that attempts and the machine's load change, as which worker was the slowest, and whoever resumes."""
TRIES = 3
"""Commands until a campaign is done: the first may find that a process of the killed one still ends."""
INSIST = re.compile(r"gpubench cancel \S+ --ended (\S+)")
"""How a user says that a job has ended of which its scheduler can't tell."""


@dataclasses.dataclass
class Seen:
    """What happened at a point, and what is wrong with what came out; ``struck`` is empty where nothing was killed."""

    point: Point | SlurmPoint
    directory: Path
    struck: str
    happened: list[str]
    faults: list[str]

    def __str__(self) -> str:
        return (
            f"| {self.point} | {self.struck or 'nothing: it had ended'} | {'; '.join(self.happened)} | "
            + ("; ".join(self.faults) or "all is there")
            + " |"
        )


class Here:
    """A campaign on this machine."""

    def words(self, directory: Path) -> list[str]:
        """The command that starts it."""
        return words(write_suite(directory, reps=2, count=20), "--blocks", "1", variants=VARIANTS)

    def env(self, directory: Path) -> dict[str, str]:
        """Variables of its commands."""
        (directory / "scratch").mkdir(exist_ok=True)
        return {"TMPDIR": str(directory / "scratch")}

    def resumptions(self, campaign: Path, number: int) -> list[list[str]]:
        """Commands of the ``number``-th attempt to resume it, from 0; the last one says whether it is done."""
        del number
        return [["bench", "--campaign", str(campaign)]]

    def sure(self, job_id: str) -> bool:
        """Whether a user would say that the job has ended, of which its scheduler can't tell."""
        del job_id
        return False

    def left(self, directory: Path) -> Iterator[str]:
        """Scratch directories that are still there."""
        yield from (f"left: {path.relative_to(directory)}" for path in (directory / "scratch").iterdir())


class UnderSlurm(Here):
    """A campaign on two hosts of the test cluster, always the same two, so that a resumed job finds what one left."""

    def __init__(self, slurm: SlurmCluster) -> None:
        self.slurm = slurm
        self.cache = slurm.shared / "cache"
        copy_images(self.cache)
        self._over = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._undrain, daemon=True).start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._over.set()

    def _undrain(self) -> None:
        """As a site's staff does: a controller that was killed drains the nodes of a job that it forgot."""
        while not self._over.wait(5):
            with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):  # no controller answers
                for name, state in self.slurm.nodes().items():
                    if state.startswith("drain"):
                        self.slurm.run(["scontrol", "update", f"nodename={name}", "state=resume"])

    def words(self, directory: Path) -> list[str]:
        where = ("--site", "local-slurm", "--nodes", "2", "--set", 'batch.queue="debug"', "--set", "limits.job=25m")
        return [*super().words(directory), *where]

    def env(self, directory: Path) -> dict[str, str]:
        del directory
        return {**self.slurm.env(), "XDG_CACHE_HOME": str(self.cache)}

    def sure(self, job_id: str) -> bool:
        """By the queue: a controller that was killed has forgotten the job, or a submit never reached it."""
        return job_id not in self.slurm.say("squeue", "--noheader", "--format=%A").split()

    def resumptions(self, campaign: Path, number: int) -> list[list[str]]:
        first = [["submit", "--campaign", str(campaign)], ["status", "--watch", str(campaign)]]
        return [*(first if number == 0 else []), *super().resumptions(campaign, number)]

    def left(self, directory: Path) -> Iterator[str]:
        self.slurm.wait_idle()
        try:
            nothing_left(lambda: left_on(self.slurm))
        except AssertionError as error:
            yield f"processes {error}"
        hosts = self.slurm.root / "hosts"
        if any(hosts.glob("*/tmp/gpubench-*")):  # of a host that crashed; no job of ours came to it since
            cleaned = ["sites", "clean", "local-slurm", "--set", 'batch.queue="debug"', "--all", "--remove"]
            done = run_gpubench(cleaned, directory, {**own_queue(directory), **self.env(directory)}, one_stream=True)
            yield from [f"sites clean: {done.stdout}"] if done.returncode else []
        yield from (f"left: {path.relative_to(hosts)}" for path in hosts.glob("*/tmp/gpubench-*"))


HERE = Here()


Rows = Counter[tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Undisturbed:
    """What comes out of a campaign that nobody kills, and how long its command takes."""

    rows: Rows
    seconds: float

    @staticmethod
    def run(directory: Path, site: Here = HERE) -> Undisturbed:
        """Run it in the empty ``directory``."""
        begun = time.monotonic()
        front = Front(directory, *site.words(directory), env=site.env(directory))
        assert front.end(LONGEST_S) == 0, front.output
        seconds = time.monotonic() - begun
        (campaign,) = _campaigns(directory)
        return Undisturbed(_table(campaign) + _answers(campaign), seconds)


def kill(
    point: Point | SlurmPoint,
    directory: Path,
    expected: Rows,
    *,
    interleaved: bool = False,
    site: Here = HERE,
) -> Seen:
    """Start a campaign in the empty ``directory``, kill it at the point, resume it until it is done, and look."""
    planned = [*site.words(directory), *(["--set", "layout.arrangement=interleaved"] if interleaved else [])]
    expected = _without_page(expected) if interleaved else expected
    front = point.start(directory, planned, site.env(directory))
    struck = point.strike(front)
    code = front.end(LONGEST_S)
    seen = Seen(point, directory, struck, [f"bench ended with {code}"], [])
    seen.faults += _bugs(front.output)
    if not _resume(seen, directory, planned, site):
        seen.faults.append("not done")
    campaigns = _campaigns(directory)
    if len(campaigns) == 1:
        seen.faults += _faults(seen, campaigns[0], directory, expected)
        seen.faults += site.left(directory)
    else:
        seen.faults.append(f"{len(campaigns)} campaigns")
    point.over(directory)
    return seen


def _resume(seen: Seen, directory: Path, planned: list[str], site: Here) -> bool:
    """Whether the campaign is done after so many attempts."""
    for number in range(TRIES):
        campaigns = _campaigns(directory)
        for asked in site.resumptions(campaigns[0], number) if campaigns else [planned]:
            env = {**own_queue(directory), **site.env(directory)}
            done = run_gpubench(asked, directory, env, one_stream=True)
            seen.happened.append(f"{asked[0]} {done.returncode}")
            seen.faults += _bugs(done.stdout)
            if done.returncode:
                seen.happened[-1] += f" ({done.stdout.strip().splitlines()[-1][:200]})"
            if (match := INSIST.search(done.stdout)) and site.sure(match[1]):
                said = run_gpubench(["cancel", campaigns[0], "--ended", match[1]], directory, env, one_stream=True)
                seen.happened.append(f"cancel --ended {match[1]} {said.returncode}")
        if done.returncode == 0:
            return True
    return False


def _campaigns(directory: Path) -> list[Path]:
    return sorted(path.parent for path in directory.glob("outputs/*/plan.json"))


def _bugs(output: str) -> list[str]:
    return [line for line in output.splitlines() if "a bug in gpubench" in line or line.startswith("Traceback")]


def _faults(seen: Seen, directory: Path, home: Path, expected: Rows) -> Iterator[str]:
    point = seen.point
    campaign = Campaign.open(directory)
    replaced = {block.replaces for job in campaign.jobs for block in job.blocks}
    found = _table(directory) + _answers(directory)
    for one in account(campaign).outcomes:
        if one.status == "failed" and point.explains(one.reason):
            seen.happened.append(f"{one.run.variant} failed: {one.reason}")
            expected, found = (
                Counter({row: count for row, count in some.items() if row[0] != ANSWERS and one.run.variant not in row})
                for some in (expected, found)
            )
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
    if replaced - {None} or expected == _without_page(expected):  # a page names the runs that were lost
        expected, found = _without_page(expected), _without_page(found)
    if found != expected:
        yield f"store, verdicts or page have {dict(found - expected)} more, and lack {dict(expected - found)}"
    yield from _left(directory, home)


def _left(directory: Path, home: Path) -> Iterator[str]:
    """Processes, temporary files, meeting points and locks that are still there."""
    try:
        until(lambda: not cluster_processes(directory), "the last process", timeout=30)
    except AssertionError:
        yield f"processes {cluster_processes(directory)}"
    yield from (f"left: {path.relative_to(home)}" for path in directory.glob("runs/.rendezvous*"))
    yield from (f"left: {path.relative_to(home)}" for path in directory.rglob(".*") if is_temporary(path.name))
    for lock in (directory, *home.glob("state/**/*.lock")):
        handle = os.open(lock, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield f"locked: {lock.relative_to(home)}"
        finally:
            os.close(handle)


def _table(directory: Path) -> Rows:
    """How many samples of ok runs each cell has in blocks that stand; what differs between two is left out."""
    campaign = Campaign.open(directory)
    replaced = {block.replaces for job in campaign.jobs for block in job.blocks if block.replaces}
    stands = ~pl.col("block").is_in(sorted(replaced)) & (pl.col("run_status") == "ok")
    frame = pl.read_parquet(campaign.results).filter(stands)
    columns = ["workload", "backend", "params", "variant", "nodes", "workers_per_node", "protocol", "warmup", "rep"]
    return Counter(frame.select(columns).iter_rows())


def _answers(directory: Path) -> Rows:
    """Every verdict but for what times make of it, and the page's lines of text without their numbers."""
    try:
        cells = json.loads((directory / "verdicts.json").read_text(encoding="utf-8"))["cells"]
        page = (directory / "report.html").read_text(encoding="utf-8")
    except FileNotFoundError:
        return Counter([(ANSWERS, "none")])
    found = Counter((ANSWERS, *(one[name] for name in ANSWER)) for one in cells)
    lines = [" ".join(NUMBERS.sub("#", line).split()) for line in NO_TEXT.sub("\n", page).splitlines()]
    return found + Counter((ANSWERS, PAGE, line) for line in lines if line and not OF_TIMES.search(line))


def _without_page(rows: Rows) -> Rows:
    return Counter({row: count for row, count in rows.items() if row[:2] != (ANSWERS, PAGE)})


def all_calls(role: str, call: str, directory: Path, expected: Rows, *, error: str = "") -> Iterator[Seen]:
    """The first such call of the role, the one behind it, and so on, until nobody makes so many.

    ``error``: they fail with it and kill nobody; ``any``: with one of ``ERRORS`` after the other.
    """
    for number in range(1, 1000):
        place = directory / f"{role.replace(' ', '-')}-{call}-{number}-{error}"
        place.mkdir()
        named = ERRORS[number % len(ERRORS)] if error == "any" else error
        seen = kill(Fault(role, call, number, named) if error else Call(role, call, number), place, expected)
        yield seen
        if not seen.struck:
            return


def full(role: str, steps: int, most_kib: int, directory: Path, expected: Rows) -> Iterator[Seen]:
    """A file system of ``most_kib / steps`` KiB, of twice as many, and so on."""
    for step in range(1, steps + 1):
        place = directory / f"full-{role}-{step}"
        place.mkdir()
        yield kill(Full(role, most_kib * step // steps), place, expected)
