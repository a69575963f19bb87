"""What ``python -m ucxx.benchmarks.send_recv`` prints: its settings, a summary, and a line per iteration.

The figure is the latency, half of a round trip. With ``--no-detailed-report`` there is the average only. The size of
messages is rounded to three digits, so that it is a parameter, and no count of bytes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from gpubench.importers.base import PRINTED, Format, Refused, Row, positive, whole

_BEGIN = "Roundtrip benchmark"
_PAIR = re.compile(r"^([^|]+?)\s*\| (.*?)\s*$")
_ITERATION = re.compile(r"^(\d+)\s*\| [\d.]+ \w+/s, (\d+) ?ns\s*$")
_AVERAGE = re.compile(r"^(\d+) ns$")
_NO_PARAMETER = ("Iterations", "Device(s)", "Server CPU", "Client CPU", "Backend")


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """The iterations of each run whose output is in the file."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    begins = [at for at, line in enumerate(lines) if line.strip() == _BEGIN]
    for run, (begin, end) in enumerate(itertools.pairwise([*begins, len(lines)]), start=1):
        yield from _rows(name, lines[begin:end], begin + 1, f"{name}:{run}")
    if not begins:
        yield Refused(name, 1, f"no output of ucxx.benchmarks.send_recv: no line '{_BEGIN}'")


def _rows(name: str, lines: list[str], first: int, run: str) -> Iterator[Row | Refused]:
    settings: dict[str, str] = {}
    times: list[tuple[int, str | int, int | None, str]] = []
    for line, text in enumerate(lines, start=first):
        if one := _ITERATION.match(text):
            times.append((line, int(one[1]), 1, one[2]))
        elif pair := _PAIR.match(text):
            settings.setdefault(pair[1], pair[2])
    wanted = whole(settings.get("Iterations"))
    if times and len(times) != wanted:
        yield Refused(name, times[-1][0], f"{len(times)} of {wanted} iterations: the output is cut off; they are kept")
    average = _AVERAGE.match(settings.get("Latency (average)", ""))
    if not times and average:
        line = next(at for at, text in enumerate(lines, start=first) if text.startswith("Latency (average)"))
        times = [(line, "", wanted, average[1])]
    if not times:
        yield Refused(name, first, "neither iterations nor 'Latency (average)': the output is cut off")
    summary = ("Bandwidth (", "Latency (")
    params = {
        key.lower().replace(" ", "_"): value
        for key, value in settings.items()
        if key not in _NO_PARAMETER and not key.startswith(summary)
    }
    for line, rep, reps, text in times:
        seconds = positive(text)
        if seconds is None:
            yield Refused(name, line, f"{text} ns is no time")
            continue
        yield Row(
            file=name,
            line=line,
            workload="ucxx send_recv",
            wall_s=seconds / 1e9,
            extra={**settings, "latency_ns": text},
            run=run,
            identity=(name, line),
            backend=settings.get("Backend"),
            params=params,
            device="cpu" if settings.get("Device(s)") == "CPU-only" else "gpu" if "Device(s)" in settings else None,
            rep=rep if isinstance(rep, int) else None,
            reps=reps,
        )


FORMAT = Format(
    what="what python -m ucxx.benchmarks.send_recv printed",
    patterns=PRINTED,
    read=read,
    lacks=("date", "UCX and ucxx versions", "hosts", "exact message size", "transport, but where UCX_TLS was printed"),
    caution="iterations of one process follow one another: a date is one figure, however many they are",
)
