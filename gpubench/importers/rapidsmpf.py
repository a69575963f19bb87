"""What rapidsmpf's ``bench_comm`` and ``bench_shuffle`` print at the end: ``means: 3.09 sec | ... | nranks: 8``.

https://github.com/rapidsai/rapidsmpf/issues/698. The seconds are the mean over the runs of one start. The line doesn't
name the benchmark: the file does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpubench.importers.base import PRINTED, Format, Refused, Row, numbered_lines, plain_number, positive, whole

_BEGIN = "means:"
_RANKS = "nranks"
_RATES = ("/s", "/sec")


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """A row per line of results."""
    found = False
    for number, line in numbered_lines(path):
        if line.strip().startswith(_BEGIN):
            found = True
            yield _row(path, name, number, line)
    if not found:
        yield Refused(name, 1, f"no output of a rapidsmpf benchmark: no line '{_BEGIN} ... sec | ...'")


def _row(path: Path, name: str, line: int, text: str) -> Row | Refused:
    pairs = (part.partition(":") for part in text.split("|"))
    fields = {key.strip(): value.strip() for key, colon, value in pairs if colon}
    words = fields["means"].split()
    seconds = positive(words[0]) if words[1:] == ["sec"] else None
    if seconds is None:
        return Refused(name, line, f"means '{fields['means']}' are no seconds")
    params = {
        key: plain_number(value)
        for key, value in fields.items()
        if key not in ("means", _RANKS) and not value.endswith(_RATES)
    }
    return Row(
        file=name,
        line=line,
        workload=f"rapidsmpf: {path.stem}",
        wall_s=seconds,
        extra=fields,
        run=f"{name}:{line}",
        identity=(name, line),
        params=params,
        workers=whole(fields.get(_RANKS)),
        reps=None,
    )


FORMAT = Format(
    what="the lines of results of rapidsmpf's bench_comm and bench_shuffle",
    patterns=PRINTED,
    read=read,
    lacks=("date", "UCX", "nodes", "hosts", "benchmark, but in the file's name", "count of repetitions", "single ones"),
    caution="the mean is over ranks and runs: a slow rank can't be told from a slow run",
)
