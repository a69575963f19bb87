"""What nccl-tests print: settings, the GPUs of all ranks, and a row per size with the times of two arrangements.

https://github.com/NVIDIA/nccl-tests. Times are microseconds per operation, means over ``iters``. Out-of-place and
in-place are two cells. The test is named in newer releases only (``# Collective test starting:``); else by the file.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from gpubench.importers.base import PRINTED, Format, Refused, Row, numbered_lines, positive, whole

_BEGINS = ("# nThread", "# nccl-tests version", "# Collective test starting")
"""One of these stands above the rows of a run."""
_SETTING = re.compile(r"([A-Za-z]+(?: iters)?):? (\d+)")
_VERSION = re.compile(r"^# nccl-tests version (\S+)(?:.*nccl-library=(\S+))?")
_TEST = re.compile(r"^# Collective test starting: (\S+)")
_RANK = re.compile(r"^#\s+Rank\s+(\d+)\s.*?\bon\s+(\S+)\s+device")
_HEADING = re.compile(r"^#\s+size\s+count\s+type\s+(.*?)\s*time\s+algbw\s+busbw\s+(\S+)")
_UNCHECKED = "N/A"
_PLACES = ("out-of-place", "in-place")
_FIGURES = ("time_us", "algbw_gb_s", "busbw_gb_s", "check")
_COUNT_OF_WRONG = "#wrong"
"""What the last column is called; in older releases it is a deviation, which says of no answer that it is wrong."""


@dataclasses.dataclass
class _Output:
    """What stands above the rows of one test; ``hosts`` by rank, ``columns`` before the figures."""

    test: str
    number: int = 0
    settings: dict[str, str] = dataclasses.field(default_factory=dict)
    hosts: dict[str, str] = dataclasses.field(default_factory=dict)
    columns: list[str] = dataclasses.field(default_factory=list)
    check: str = ""


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """Two rows for every size of each run whose output is in the file; a wrong answer is refused."""
    output = _Output(path.stem)
    for number, line in numbered_lines(path):
        if output.columns and line.startswith(_BEGINS):
            output = _Output(path.stem, output.number)
        if found := _VERSION.match(line):
            output.settings |= {"version": found[1], "nccl": found[2] or ""}
        elif line.startswith("# nThread"):
            output.settings |= dict(_SETTING.findall(line))
        elif found := _TEST.match(line):
            output.test = found[1]
        elif found := _RANK.match(line):
            output.hosts[found[1]] = found[2]
        elif found := _HEADING.match(line):
            output.columns, output.check = ["size", "count", "type", *found[1].split()], found[2]
            output.number += 1
        elif line.strip()[:1].isdecimal():
            yield from _rows(name, number, output, line.split())
    if not output.number:
        yield Refused(name, 1, "no output of nccl-tests: no heading 'size count type'")


def _rows(name: str, line: int, output: _Output, values: list[str]) -> Iterator[Row | Refused]:
    expected = len(output.columns) + len(_PLACES) * len(_FIGURES)
    if len(values) != expected or not output.columns or not values[0].isdecimal():
        why = f"{len(values)} fields, the heading has {expected}" if output.columns else "no heading before it"
        yield Refused(name, line, why)
        return
    about = dict(zip(output.columns, values, strict=False))
    size = int(about["size"])
    params = {key: about[key] for key in output.columns if key not in ("size", "count")}
    for at, place in enumerate(_PLACES, start=1):
        first = expected - len(_FIGURES) * (len(_PLACES) + 1 - at)
        figures = dict(zip(_FIGURES, values[first : first + len(_FIGURES)], strict=True))
        seconds = positive(figures["time_us"])
        wrong = figures["check"] if output.check == _COUNT_OF_WRONG else _UNCHECKED
        if seconds is None:
            yield Refused(name, line, f"{place}: time '{figures['time_us']}' is none")
        elif wrong not in ("0", _UNCHECKED):
            yield Refused(name, line, f"{place}: its answer was wrong (#wrong {wrong})")
        else:
            yield Row(
                file=name,
                line=line,
                workload=f"nccl-tests: {output.test}",
                wall_s=seconds / 1e6,
                extra={**output.settings, **about, **figures, "ranks": output.hosts},
                run=f"{name}:{output.number}",
                identity=(name, line, place),
                params={**params, "size": size, "place": place},
                workers=len(output.hosts) or None,
                nodes=len(set(output.hosts.values())) or None,
                device="gpu",
                reps=whole(output.settings.get("iters")),
                bytes=size,
                answer="unchecked" if wrong == _UNCHECKED else "ok",
            )


FORMAT = Format(
    what="what nccl-tests printed",
    patterns=PRINTED,
    read=read,
    lacks=("date", "UCX", "transport", "single repetitions", "test, but in newer releases", "NCCL, but in newer ones"),
    caution="a row is one mean of its iterations, measured after those of smaller sizes in one process",
)
