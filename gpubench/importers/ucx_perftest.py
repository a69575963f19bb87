"""What ``ucx_perftest`` prints: reports while it runs, and the figures of the whole run in the line ``Final:``.

The figure is ``overall``, the arithmetic mean over all iterations, in seconds. In a latency test it is half a round
trip; in a bandwidth test it is the time per message, of which the sender's completion is the end. MB are 2^20 bytes.
Before UCX 1.11 there is no ``Final:``: the last line is the result. The server prints which test it is and the size of
messages, the client the figures: a file that holds both says more than the client's alone.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpubench.importers.base import PRINTED, Format, Refused, Row, numbered_lines, positive, whole

_BOX = re.compile(r"^\|\s*([A-Z][A-Za-z ]+?):\s*(.*?)\s*\|$")
_FIRST = "API"
_HEADING = re.compile(r"\|\s*(latency|overhead) \(usec\)\s*\|")
_FIGURES = re.compile(r"^\s*(?:\[thread \d+\]|(Final:))?\s*(\d+)((?:\s+\S+){7})\s*$")
_NAMES = ("p50_us", "average_us", "overall_us", "average_mb_s", "overall_mb_s", "average_msg_s", "overall_msg_s")
_PARAMS = ("API", "Data layout", "Send memory", "Recv memory", "Window size")


@dataclasses.dataclass
class _Run:
    number: int
    box: dict[str, str] = dataclasses.field(default_factory=dict)
    heading: str = ""
    stages: bool = False
    reports: list[tuple[int, bool, dict[str, Any]]] = dataclasses.field(default_factory=list)


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """The result of each run whose output is in the file."""
    runs: list[_Run] = []
    for number, line in numbered_lines(path):
        box, heading, figures = _BOX.match(line), _HEADING.search(line), _FIGURES.match(line)
        if (box and box[1] == _FIRST) or (heading and (not runs or runs[-1].heading)):
            runs.append(_Run(len(runs) + 1))
        if box and runs:
            runs[-1].box[box[1]] = box[2]
        elif heading:
            runs[-1].heading = heading[1]
        elif runs and "# iterations" in line:
            runs[-1].stages = "Stage" in line
        elif figures and runs and runs[-1].heading:
            values = dict(zip(_NAMES, figures[3].split(), strict=True))
            runs[-1].reports.append((number, bool(figures[1]), {"iterations": figures[2], **values}))
    for run in runs:
        yield _row(name, run)
    if not runs:
        yield Refused(name, 1, "no output of ucx_perftest: no table with 'latency (usec)' or 'overhead (usec)'")


def _row(name: str, run: _Run) -> Row | Refused:
    if not run.reports:
        why = "no figures: the client prints them, this may be the server's output"
        return Refused(name, 1, f"run {run.number} has {why}")
    line, final, figures = run.reports[-1]
    if run.stages and not final:
        return Refused(name, line, f"run {run.number} ends before 'Final:'")
    seconds, reps = positive(figures["overall_us"]), whole(figures["iterations"])
    if seconds is None or reps is None:
        return Refused(name, line, f"unreadable: {' '.join(figures.values())}")
    size = whole(run.box.get("Message size"))
    memory = {run.box[key] for key in ("Send memory", "Recv memory") if key in run.box}
    known = {key.lower().replace(" ", "_"): run.box[key] for key in _PARAMS if key in run.box}
    return Row(
        file=name,
        line=line,
        workload=f"ucx_perftest: {run.box.get('Test', run.heading)}",
        wall_s=seconds / 1e6,
        extra={**run.box, **figures, "heading": run.heading, "reports": [one for _, _, one in run.reports[:-1]]},
        run=f"{name}:{run.number}",
        identity=(name, line),
        params=known | ({} if size is None else {"size": size}),
        device=None if not memory else "cpu" if memory == {"host"} else "gpu",
        reps=reps,
        bytes=size,
    )


FORMAT = Format(
    what="what ucx_perftest printed",
    patterns=PRINTED,
    read=read,
    lacks=(
        "date",
        "UCX version",
        "transport",
        "hosts",
        "single repetitions",
        "test and size, but in the server's output",
    ),
    caution="bandwidth counts the sender's completion, not the arrival of the last message",
)
