"""What the OSU micro-benchmarks print: a title, a heading, and a row per message size.

https://mvapich.cse.ohio-state.edu/benchmarks/. ``osu_latency``, ``osu_bw`` and the collectives print one mean per size;
of a bandwidth (10^6 bytes per second) the figure is seconds per message, size over bandwidth. Columns are read by the
heading, because ``-f``, ``-c`` and newer releases add some.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from gpubench.importers.base import PRINTED, Format, Refused, Row, numbered_lines, positive, whole

_TITLE = re.compile(r"^#\s*(OSU .*?)(?:\s+Test)?(?:\s+v(\d[\w.]*))?\s*$")
_MEMORY = re.compile(r"^#\s*Send Buffer on (\w+) .*Receive Buffer on (\w+)")
_SETTING = re.compile(r"\[\s*([^:\]]+?):\s*(\d+)\s*\]")
_LATENCY = ("Latency (us)", "Avg Latency(us)", "Avg Lat(us)", "Overall(us)")
_BANDWIDTH = ("Bandwidth (MB/s)", "MB/s")
_WRONG = "Fail"


@dataclasses.dataclass
class _Output:
    """What stands above the rows of one test."""

    number: int = 0
    title: str = ""
    version: str = ""
    columns: list[str] = dataclasses.field(default_factory=list)
    settings: dict[str, object] = dataclasses.field(default_factory=dict)
    device: str | None = None


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """Every row of one output, or of several that went to one file; what MPI says in between is left out."""
    output = _Output()
    for number, line in numbered_lines(path):
        if found := _TITLE.match(line):
            output = _Output(output.number + 1, found[1], found[2] or "")
        elif found := _MEMORY.match(line):
            output.settings["memory"] = f"{found[1]} to {found[2]}".lower()
            output.device = "cpu" if {found[1], found[2]} == {"HOST"} else "gpu"
        elif line.startswith("#"):
            output.settings.update((key.replace(" ", "_"), int(value)) for key, value in _SETTING.findall(line))
            heading = re.split(r"\s{2,}", line[1:].strip())
            output.columns = heading if {*_LATENCY, *_BANDWIDTH} & {*heading} else output.columns
        elif line.strip()[:1].isdecimal():
            yield _row(name, number, output, line.split())
    if not output.number:
        yield Refused(name, 1, "no output of an OSU micro-benchmark: no line '# OSU ... Test'")


def _row(name: str, line: int, output: _Output, values: list[str]) -> Row | Refused:
    if not output.title:
        return Refused(name, line, "no title '# OSU ... Test' before it")
    if len(output.columns) != len(values):
        return Refused(name, line, f"{len(values)} fields, the heading has {len(output.columns)}")
    fields = dict(zip(output.columns, values, strict=True))
    size = int(fields["Size"]) if fields.get("Size", "").isdecimal() else None
    latency = next((positive(fields[one]) for one in _LATENCY if one in fields), None)
    rate = next((positive(fields[one]) for one in _BANDWIDTH if one in fields), None)
    seconds = latency / 1e6 if latency else size / rate / 1e6 if rate and size else None
    if seconds is None or ("Size" in fields and size is None):
        return Refused(name, line, f"no size and time: {' '.join(values)}")
    if fields.get("Validation") == _WRONG:
        return Refused(name, line, "its answer was wrong (Validation)")
    return Row(
        file=name,
        line=line,
        workload=output.title,
        wall_s=seconds,
        extra={**fields, "title": output.title, "version": output.version},
        run=f"{name}:{output.number}",
        identity=(name, line),
        params={**output.settings, **({} if size is None else {"size": size})},
        device=output.device,
        reps=whole(fields.get("Iterations")),
        bytes=size,
        answer="ok" if fields.get("Validation") == "Pass" else "unchecked",
    )


FORMAT = Format(
    what="what the OSU micro-benchmarks printed",
    patterns=PRINTED,
    read=read,
    lacks=("date", "UCX", "MPI", "nodes", "processes", "host", "single repetitions", "their count, but with -f"),
    caution="a row is one mean; where processes ran (one node or two) is not recorded",
)
