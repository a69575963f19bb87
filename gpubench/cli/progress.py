"""What is happening right now: block, run, workload, repetition, elapsed, what is left."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import rich.live
import rich.text

from gpubench.cli.say import say
from gpubench.cli.terminal import Terminal
from gpubench.model.plan import PlannedBlock, PlannedRun
from gpubench.model.quantities import format_seconds
from gpubench.model.text import visible
from gpubench.spec.records import RUN_FILE, SAMPLES_FILE
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_record, run_directories


@dataclasses.dataclass
class _Seen:
    started: float
    done: bool = False


class Progress:
    """Watches the run directories of a campaign; prints a line when a run ends, and on a terminal a live one too."""

    def __init__(
        self, campaign: Campaign, live: rich.live.Live | None, *, quiet: bool = False, joining: bool = False
    ) -> None:
        self.campaign = campaign
        self.live = live
        self.quiet = quiet
        self.began = time.monotonic()
        self.rows = [(block, run) for _, block, run in campaign.rows()]
        self.blocks = len({block.block for block, _ in self.rows})
        self.workloads = {item.params_id: item for item in campaign.plan.workloads}
        self._seen: dict[Path, _Seen] = {}
        self._durations: list[float] = []
        # Attempts from before this job are not news; whoever joins a job that runs wants to see how its run ends.
        old = [one for one in run_directories(campaign.runs_dir) if not joining or (one.path / RUN_FILE).exists()]
        self._old = {one.path for one in old}
        planned = {run.run for _, run in self.rows}
        self._done = {one.run for one in old if one.run in planned and _has_finished(one.path)}
        self._holder = ""

    def waiting(self, holder: str) -> None:
        """Another job has the machine."""
        if holder != self._holder:
            self._holder = holder
            self.tell(f"waiting for this machine; it is held by {holder or 'another campaign'}")
        self._show(f"waiting for {holder or 'another campaign'}  {format_seconds(time.monotonic() - self.began)}")

    def look(self) -> None:
        """Look at the run directories once."""
        current = ""
        # In order of attempts: the newest one of a run stays. One look at the directory, however many runs are planned.
        new = {one.run: one.path for one in run_directories(self.campaign.runs_dir) if one.path not in self._old}
        for block, run in self.rows:
            if run.run in self._done:
                continue
            path = new.get(run.run)
            if path is None:
                continue
            seen = self._seen.setdefault(path, _Seen(time.monotonic()))
            if (path / RUN_FILE).exists():
                self._ended(block, run, path, seen)
            else:
                current = self._describe(block, run, path, seen)
        if current:
            self._show(current)

    def _ended(self, block: PlannedBlock, run: PlannedRun, path: Path, seen: _Seen) -> None:
        record = read_record(path)
        if record is None:
            return
        self._done.add(run.run)
        # Without the time in which the block's other runs had their turns.
        seconds = max(0.0, time.monotonic() - seen.started - record.phases.get("waited", 0.0))
        if record.status == "ok":
            self._durations.append(seconds)
        failed = [f"{one.workload} {one.status}: {one.reason}" for one in record.workloads if one.status != "ok"]
        words = "; ".join([record.status, *failed]) if record.status == "ok" else f"{record.status}: {record.reason}"
        self.tell(
            f"[{len(self._done)}/{len(self.rows)}] block {block.block} {run.variant}: {words}"
            f"  {format_seconds(seconds)}{self._left()}"
        )

    def _describe(self, block: PlannedBlock, run: PlannedRun, path: Path, seen: _Seen) -> str:
        place = f"block {block.block} ({len(self._done) + 1} of {len(self.rows)} runs)  {run.variant}"
        return f"{place}  {self._step(path)}  {format_seconds(time.monotonic() - seen.started)}{self._left()}"

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
        each = sum(self._durations) / len(self._durations) if self._durations else self.campaign.plan.time.run_s
        elapsed = format_seconds(time.monotonic() - self.began)
        return f"  ({elapsed} elapsed, about {format_seconds(left * each)} left)" if left else f"  ({elapsed} elapsed)"

    def tell(self, line: str) -> None:
        """A line that stays."""
        if self.live:
            self.live.console.print(rich.text.Text(visible(line)))
        elif not self.quiet:
            say(line)

    def _show(self, line: str) -> None:
        if self.live:
            self.live.update(rich.text.Text(visible(line), style="dim"))


def _has_finished(attempt: Path) -> bool:
    record = read_record(attempt)
    return record is not None and record.status in ("ok", "failed")


@contextlib.contextmanager
def progress_for(campaign: Campaign, *, quiet: bool = False, joining: bool = False) -> Iterator[Progress]:
    """Live on a terminal, plain lines elsewhere; nothing at all when ``quiet``. ``joining``: the job may be running."""
    if quiet or not sys.stdout.isatty():
        yield Progress(campaign, None, quiet=quiet, joining=joining)
        return
    with rich.live.Live(console=Terminal(), refresh_per_second=4, transient=True) as live:
        yield Progress(campaign, live, joining=joining)
