"""What ``parsl-perf`` prints: batches of tasks that do nothing, each sized by the rate of the last.

The result is the last batch; those before it bring it to size, and are kept as warm-ups. The figure is seconds per
task, because batches of two runs are hardly ever of one size. Lines are read by their words: positions in them have
changed before.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from gpubench.importers.base import PRINTED, Format, Refused, Row, contradiction, numbered_lines, positive, whole

WORKLOAD = "parsl-task"
"""Seconds per task that does nothing."""

_BEGIN = re.compile(r"^==== Iteration (\d+) ====")
_PARTS = {
    "num_tasks": re.compile(r"^Will run (\d+) tasks"),
    "submission_s": re.compile(r"^Submission took ([\d.]+) seconds"),
    "submission_tps": re.compile(r"^Submission took [\d.]+ seconds = ([\d.]+) tasks/second"),
    "runtime_s": re.compile(r"^Runtime: actual ([\d.]+)s"),
    "target_s": re.compile(r"^Runtime: actual [\d.]+s vs target ([\d.]+)s"),
    "runtime_tps": re.compile(r"^Tasks per second: ([\d.]+)"),
}
_END = "Tests complete"
_VERSION = re.compile(r"^(?:Parsl version:?\s*)?(\d{4}\.\d+\.\d+|\d+\.\d+\.\d+\S*)$", re.IGNORECASE)


@dataclasses.dataclass
class _Batch:
    number: int
    line: int
    run: int
    figures: dict[str, float]


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """A row per batch, of one run or of several whose output went to one file."""
    batches: list[_Batch] = []
    run, version = 0, None
    for number, line in numbered_lines(path):
        if begin := _BEGIN.match(line):
            if int(begin[1]) == 1 and batches:
                yield from _rows(name, batches, version, ended=False)
                batches = []
            run += int(begin[1]) == 1
            batches.append(_Batch(int(begin[1]), number, run, {}))
        elif batches:
            for figure, pattern in _PARTS.items():
                if found := pattern.match(line):
                    batches[-1].figures[figure] = float(found[1])
            if line.startswith(_END):
                yield from _rows(name, batches, version, ended=True)
                batches = []
        elif found := _VERSION.match(line.strip()):
            version = found[1]  # the configurations of parsl-perf-runs print it first
    if batches:
        yield from _rows(name, batches, version, ended=False)
    elif not run:
        yield Refused(name, 1, "no output of parsl-perf: no line '==== Iteration 1 ===='")


def _rows(name: str, batches: list[_Batch], version: str | None, *, ended: bool) -> Iterator[Row | Refused]:
    for batch in batches:
        seconds, tasks = positive(batch.figures.get("runtime_s")), whole(batch.figures.get("num_tasks"))
        if seconds is None or tasks is None:
            yield Refused(name, batch.line, f"iteration {batch.number} is cut off, or has no time")
            continue
        if why := contradiction(seconds, tasks, batch.figures.get("runtime_tps")):
            yield Refused(name, batch.line, why)
            continue
        last = batch is batches[-1]
        if last and not ended:
            why = f"the output ends before '{_END}': iteration {batch.number} may not be the last: a warm-up"
            yield Refused(name, batch.line, why)
        yield Row(
            file=name,
            line=batch.line,
            workload=WORKLOAD,
            wall_s=seconds / tasks,
            extra={**batch.figures, "iteration": batch.number, "iterations": len(batches), "parsl_version": version},
            run=f"{name}:{batch.run}",
            identity=(name, batch.line),
            variant=f"parsl {version}" if version else None,
            backend="parsl",
            rep=batch.number - 1,
            reps=tasks,
            warmup=not (last and ended),
        )


FORMAT = Format(
    what="what parsl-perf printed",
    patterns=PRINTED,
    read=read,
    lacks=("date", "executor", "workers", "nodes", "host", "UCX", "single tasks", "parsl's version, but where printed"),
    caution="one thread submits the tasks: beyond a few workers the figure is the client's, not the cluster's",
)
