"""What is happening right now: block, run, workload, repetition, elapsed, what is left."""

import contextlib
import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import rich.console
import rich.live
import rich.progress_bar
import rich.table
import rich.text

from gpubench.campaign.observer import Observer
from gpubench.cli.say import say
from gpubench.cli.terminal import Terminal
from gpubench.errors import DataError
from gpubench.model.plan import PlannedBlock, PlannedRun
from gpubench.model.quantities import format_seconds
from gpubench.model.text import visible
from gpubench.node.spec import RunRecord
from gpubench.node.spec.records import RAN, RUN_FILE, SAMPLES_FILE
from gpubench.plan.block_design import interleaved
from gpubench.runtimes import RUNTIMES
from gpubench.store.accounting import left_no_time, not_ok
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_record, record_seconds, run_directories

BAR = 24
"""Columns of the bar: its words stand beside it on a terminal of 80."""


class Progress(Observer):
    """Watches the run directories of a campaign; prints a line when a run ends, and on a terminal shows a bar.

    It shows no times: whoever sees effects before the last block may stop at the one that pleases.
    """

    def __init__(self, campaign: Campaign, live: rich.live.Live | None, *, joining: bool = False) -> None:
        self.campaign = campaign
        self.live = live
        self.began = time.monotonic()
        self.rows = [(block, run) for _, block, run in campaign.rows()]
        self.blocks = {block.block: [run.run for run in block.runs] for block, _ in self.rows}
        self.workloads = {item.params_id: item for item in campaign.plan.workloads}
        self._seen: dict[Path, float] = {}
        self._durations: list[float] = []
        # Runs of an interleaved block are alive at the same time: seconds of all blocks so far, and runs in them.
        self._together: tuple[float, int] | None = (0.0, 0) if interleaved(campaign.plan.site) else None
        # Attempts from before this job are not news; whoever joins a job that runs wants to see how its run ends.
        old = [
            attempt
            for attempt in run_directories(campaign.runs_dir)
            if not joining or (attempt.path / RUN_FILE).exists()
        ]
        self._old = {attempt.path for attempt in old}
        planned = {run.run for _, run in self.rows}
        records = [(attempt, _record(attempt.path)) for attempt in old if attempt.run in planned]
        self._done = {attempt.run for attempt, record in records if record and record.status in RAN}
        self._holder = ""
        self._waits_since: float | None = None
        self._limit = math.inf
        self._out_of_time = False

    def waiting(self, holder: str) -> None:
        """Show that another job uses the machine. What is waited isn't counted as elapsed."""
        self._waits_since = self._waits_since or time.monotonic()
        if holder != self._holder:
            self._holder = holder
            self.log(f"waiting for this machine; it is held by {holder or 'another campaign'}")
        self._show(f"waiting for {holder or 'another campaign'}")

    def limited(self, seconds: float) -> None:
        """What is left is no more than this, however long blocks take."""
        self._limit = time.monotonic() + seconds

    def look(self) -> None:
        """Check the run directories once."""
        if self._waits_since is not None:
            self.began += time.monotonic() - self._waits_since
            self._waits_since = None
        current = ""
        # In order of attempts: the newest one of a run stays. One look at the directory, however many runs are planned.
        new = {
            attempt.run: attempt.path
            for attempt in run_directories(self.campaign.runs_dir)
            if attempt.path not in self._old
        }
        for block, run in self.rows:
            if run.run in self._done:
                continue
            path = new.get(run.run)
            if path is None:
                continue
            began = self._seen.setdefault(path, time.monotonic())
            if (path / RUN_FILE).exists():
                self._ended(block, run, path)
            else:
                running = format_seconds(time.monotonic() - began)
                current = f"block {block.block}  {run.variant}  {self._step(path)}  {running}"
        if current:
            self._show(current)

    def _ended(self, block: PlannedBlock, run: PlannedRun, path: Path) -> None:
        record = _record(path)
        if record is None:
            return
        self._done.add(run.run)
        if left_no_time(record.status, record.reason):
            self._not_begun(block, record.reason)
            return
        seconds = record_seconds(record)
        if self._together is not None:
            self._together = time.monotonic() - min(self._seen.values()), len(self._seen)
        if record.status == "ok":
            self._durations.append(seconds)
        ok = record.status == "ok"
        outcome = "; ".join([record.status, *not_ok(record)]) if ok else f"{record.status}: {record.reason}"
        self.log(
            f"[{len(self._done)}/{len(self.rows)}] block {block.block} {run.variant}: {outcome}"
            f"  {format_seconds(seconds)}  ({self._left()})"
        )
        if len(self._done) == len(self.rows) and RUNTIMES[self.campaign.plan.site.runtime].DEFINES_LEAVE:
            self.log("every run has ended; the job removes its containers from its nodes")

    def _not_begun(self, block: PlannedBlock, reason: str) -> None:
        """One line for all blocks that the budget leaves no time for: where one has none, those after it have none."""
        if not self._out_of_time:
            self._out_of_time = True
            self.log(f"block {block.block} and those after it are not begun: {reason}")

    def _step(self, path: Path) -> str:
        try:
            lines = (path / SAMPLES_FILE).read_text(encoding="utf-8").splitlines()
            last = json.loads(lines[-1])
        except (OSError, ValueError, IndexError):
            return "starting"
        planned = self.workloads[last["params_id"]]
        return f"{last['workload']} repetition {last['rep'] + 1} of {planned.reps}"

    def _left(self) -> str:
        left = len(self.rows) - len(self._done)
        lasted, runs = (sum(self._durations), len(self._durations)) if self._together is None else self._together
        each = lasted / runs if runs else self.campaign.plan.time.run_s
        now = time.monotonic()
        elapsed = format_seconds(now - self.began)
        seconds = min(left * each, max(self._limit - now, 0.0))
        return f"{elapsed} elapsed, about {format_seconds(seconds)} left" if left else f"{elapsed} elapsed"

    def log(self, line: str) -> None:
        """A line that stays."""
        if self.live:
            self.live.console.print(rich.text.Text(visible(line)))
        else:
            say(line)

    def _show(self, line: str) -> None:
        if self.live:
            self.live.update(self.picture(line))

    def picture(self, line: str) -> rich.console.RenderableType:
        """A bar with blocks and the time that is left, above a line of what runs."""
        bar = rich.progress_bar.ProgressBar(total=len(self.rows), completed=len(self._done), width=BAR)
        complete = sum(all(run in self._done for run in runs) for runs in self.blocks.values())
        counts = f"{complete} of {len(self.blocks)} blocks  {self._left()}"
        row = rich.table.Table.grid(padding=(0, 2))
        row.add_row(bar, rich.text.Text(visible(counts)))
        return rich.console.Group(row, rich.text.Text(visible(line), style="dim"))


def _record(path: Path) -> RunRecord | None:
    """The record of a run; None without one, and where it is damaged: such a run is lost, and what replaces it runs."""
    try:
        return read_record(path)
    except DataError:
        return None


@contextlib.contextmanager
def progress_for(campaign: Campaign, /, *, joining: bool = False) -> Iterator[Progress]:
    """Live on a terminal, plain lines elsewhere; ``joining``: the job may be running."""
    if not sys.stdout.isatty():
        yield Progress(campaign, None, joining=joining)
        return
    with rich.live.Live(console=Terminal(), refresh_per_second=4, transient=True) as live:
        yield Progress(campaign, live, joining=joining)
