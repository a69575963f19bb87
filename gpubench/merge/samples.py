"""The lines of ``samples.jsonl``, checked: one by one, or those of many runs at once where every line is whole. Pure.

A million lines one by one are 20 s of Python. What is odd in any way isn't judged at once: then there is no answer, and
``parse_samples`` finds out what is wrong with which line.
"""

import dataclasses
import datetime as dt
import io
import json
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from gpubench.errors import DataError
from gpubench.spec import RunRecord, SampleLine
from gpubench.spec.plain import canonical, parse_json
from gpubench.spec.records import ANSWERS, WorkloadRecord
from gpubench.stats.runs import Ints

_FIELDS = frozenset(field.name for field in dataclasses.fields(SampleLine))
OPTIONAL = ("cpu_s", "energy_j", "throttle")
"""Those that stand in a line where they could be read."""
MOST_COST, MOST_MASK = 1e15, 2**63
MOST_REPS = 2**31
"""The table's column of them is this narrow."""
LEAST_S, MOST_S = 0.0, 1e8
"""No repetition takes no time, and none three years."""
FIRST_DAY, LAST_DAY = dt.datetime(2000, 1, 1, tzinfo=dt.UTC), dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
"""Between them every repetition begins: what stands in a record was never taken from a calendar of other times."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclasses.dataclass(frozen=True)
class RunFiles:
    """What ``merge`` needs of one finished run. ``samples`` is what stands in the file that ``source`` names."""

    record: RunRecord
    samples: bytes
    source: str

    @property
    def text(self) -> str:
        """The samples; a line that isn't UTF-8 is a damaged line, to be reported by its number like any other."""
        return self.samples.decode("utf-8", "replace")


@dataclasses.dataclass
class ParsedLines:
    """Samples with ``started_at`` as microseconds since 1970 (UTC), and what was wrong with the other lines."""

    samples: list[tuple[SampleLine, int]] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    errors: list[DataError] = dataclasses.field(default_factory=list)


def parse_samples(text: str, source: str, known: Mapping[str, WorkloadRecord]) -> ParsedLines:
    """Parse ``text``; ``known`` are the workloads that the run's record describes, by ``params_id``.

    A last line without its newline that isn't whole is what a crash leaves behind: a warning. Any other bad line is a
    DataError (kept, not raised) with ``source`` and the line's number; all other lines are parsed.
    """
    parsed = ParsedLines()
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            parsed.samples.append(_sample(parse_json(line), known))
        except json.JSONDecodeError:
            if number == len(lines):
                parsed.warnings.append(f"{source}: the last line ({number}) was cut off and is left out")
            else:
                parsed.errors.append(DataError(f"{source}, line {number}: cut off or not JSON"))
        except (TypeError, ValueError, OverflowError) as error:
            parsed.errors.append(DataError(f"{source}, line {number}: {error}"))
    return parsed


def _sample(plain: object, known: Mapping[str, WorkloadRecord]) -> tuple[SampleLine, int]:
    if not isinstance(plain, dict) or not _FIELDS.difference(OPTIONAL) <= plain.keys() <= _FIELDS:
        needed = " ".join(sorted(_FIELDS.difference(OPTIONAL)))
        raise ValueError(f"not a sample with exactly the fields {needed}, and maybe {' '.join(OPTIONAL)}")
    line = SampleLine(**plain)
    if line.params_id not in known:
        raise ValueError(f"params_id {line.params_id} is no workload of this run's record")
    if (line.workload, line.backend) != (known[line.params_id].workload, known[line.params_id].backend):
        raise ValueError(f"{line.workload} by {line.backend} isn't the workload of params_id {line.params_id}")
    if line.answer not in ANSWERS or not isinstance(line.warmup, bool):
        raise ValueError("answer or warmup is not one of the known values")
    if not (_is_count(line.rep, below=MOST_REPS) and _is_count(line.bytes, below=2**63)):
        raise ValueError(f"rep and bytes must be whole numbers from 0 to {MOST_REPS - 1} and {2**63 - 1}")
    if isinstance(line.wall_s, bool) or not isinstance(line.wall_s, int | float) or not LEAST_S < line.wall_s < MOST_S:
        raise ValueError(f"wall_s = {line.wall_s} is no duration")
    for name in ("cpu_s", "energy_j"):
        cost = getattr(line, name)
        if name in plain and (isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < MOST_COST):
            raise ValueError(f"{name} = {cost} is no cost")
    if "throttle" in plain and not _is_count(line.throttle, below=MOST_MASK):
        raise ValueError(f"throttle = {line.throttle} is no set of bits")
    return line, _microseconds(line.started_at)


def _is_count(value: object, below: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def _microseconds(text: str) -> int:
    moment = dt.datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    if not FIRST_DAY <= moment < LAST_DAY:
        raise ValueError(f"started_at = {text} is no time of a measurement")
    return (moment - _EPOCH) // _MICROSECOND


LINE: dict[str, pl.DataType] = {
    "workload": pl.String(),
    "backend": pl.String(),
    "params_id": pl.String(),
    "rep": pl.Int64(),
    "warmup": pl.Boolean(),
    "wall_s": pl.Float64(),
    "bytes": pl.Int64(),
    "answer": pl.String(),
    "started_at": pl.String(),
    "cpu_s": pl.Float64(),
    "energy_j": pl.Float64(),
    "throttle": pl.Int64(),
}
"""Fields of ``SampleLine`` and their types."""
_MOMENT = "%Y-%m-%dT%H:%M:%S%.f%:z"
AT = "at"


@dataclasses.dataclass(frozen=True)
class WorkloadLines:
    """One workload of one run: what is the same in all of its samples. ``run`` is the run's place among the runs."""

    run: int
    params_id: str
    workload: str
    backend: str
    params: str
    status: str

    @property
    def key(self) -> tuple[int, str, str, str]:
        """What it is sorted by; two of a run that agree in it are the same workload twice."""
        return self.run, self.workload, self.backend, self.params


def workloads_of(runs: Sequence[RunFiles]) -> list[WorkloadLines] | None:
    """The workloads of every run's record, in the table's order; None where a record has one of them twice."""
    texts: dict[str, str] = {}  # by repr, which is quicker than to write them anew for every run
    found = []
    for at, run in enumerate(runs):
        for one in {workload.params_id: workload for workload in run.record.workloads}.values():
            spelled = repr(one.params)
            params = texts.get(spelled) or texts.setdefault(spelled, canonical(one.params).decode())
            found.append(WorkloadLines(at, one.params_id, one.workload, one.backend, params, one.status))
    found.sort(key=lambda one: one.key)
    return found if len({one.key for one in found}) == len(found) else None


def whole_samples(runs: Sequence[RunFiles], workloads: Sequence[WorkloadLines]) -> pl.DataFrame | None:
    """Every sample of ``runs``, in the table's order; None where a line isn't exactly a sample.

    Returns:
        ``at`` is the place of the sample's workload in ``workloads``; besides ``rep warmup wall_s bytes answer
        started_at`` of the line, and OPTIONAL.
    """
    counts = [run.samples.count(b"\n") for run in runs]
    text = b"".join(run.samples for run in runs)
    if any(run.samples and not run.samples.endswith(b"\n") for run in runs):
        return None
    try:
        lines = pl.read_ndjson(io.BytesIO(text), schema=LINE) if text else pl.DataFrame(schema=LINE)
        if lines.height != sum(counts) or not _is_plain(lines, text):
            return None
        places = _places(lines, np.repeat(np.arange(len(runs)), counts), workloads)
        checked = None if places is None else _checked(lines, places)
    except pl.exceptions.PolarsError:
        return None
    if checked is None:
        return None
    # The table's order: by workload, warm-ups first, then by number.
    at, warmup, rep = (checked[name].to_numpy().astype(np.int64) for name in (AT, "warmup", "rep"))
    return checked[np.argsort((at << 32) + ((1 - warmup) << 31) + rep, kind="stable")]


def _places(lines: pl.DataFrame, runs: Ints, workloads: Sequence[WorkloadLines]) -> Ints | None:
    """The place in ``workloads`` of every line; None where one names none of its run's, or another name with it."""
    names = ("params_id", "workload", "backend")
    if any(lines[name].null_count() for name in names):
        return None
    kinds = {name: list(dict.fromkeys(getattr(one, name) for one in workloads)) for name in names}
    said = {name: lines[name].cast(pl.Enum(kinds[name])).to_physical().to_numpy().astype(np.int64) for name in names}
    table = np.full((int(runs[-1]) + 1 if len(runs) else 0, len(kinds["params_id"])), -1)
    codes = {name: {word: number for number, word in enumerate(kinds[name])} for name in names}
    coded = [np.array([codes[name][getattr(one, name)] for one in workloads], dtype=np.int64) for name in names]
    known = [one.run < len(table) for one in workloads]  # the last runs may have no samples
    at = np.flatnonzero(known)
    table[np.array([one.run for one in workloads], dtype=np.int64)[at], coded[0][at]] = at
    places = table[runs, said["params_id"]]
    if (places < 0).any():
        return None
    same = all((code[places] == said[name]).all() for code, name in zip(coded[1:], names[1:], strict=True))
    return places if same else None


def _checked(lines: pl.DataFrame, places: Ints) -> pl.DataFrame | None:
    frame = lines.select(
        pl.Series(AT, places.astype(np.uint32)),
        *("rep", "warmup", "wall_s", "bytes", "answer"),
        pl.col("started_at").str.to_datetime(_MOMENT, time_unit="us", time_zone="UTC", strict=False),
        *OPTIONAL,
    )
    rules = (
        ~pl.any_horizontal(pl.exclude(OPTIONAL).is_null())
        & pl.col("rep").is_between(0, MOST_REPS, closed="left")
        & (pl.col("bytes") >= 0)
        & pl.col("wall_s").is_between(LEAST_S, MOST_S, closed="none")
        & pl.col("started_at").is_between(FIRST_DAY, LAST_DAY, closed="left")
        & pl.col("answer").is_in(list(ANSWERS))
        & pl.all_horizontal(pl.col("cpu_s", "energy_j").is_between(0, MOST_COST, closed="left")).fill_null(value=True)
        & (pl.col("throttle") >= 0).fill_null(value=True)
    )
    return frame if not frame.height or frame.select(rules.all()).item() else None


def _is_plain(lines: pl.DataFrame, text: bytes) -> bool:
    """Whether the text has as many fields as these lines, less those that are left out: polars would drop another.

    One too many here and one too few there are as many, but what is missing is null.
    """
    return _count_pairs(text, b'":') == lines.height * len(LINE) - sum(lines[name].null_count() for name in OPTIONAL)


def _count_pairs(text: bytes, pair: bytes) -> int:
    """As ``text.count(pair)`` of two different bytes, in a third of its time."""
    signs, found = np.frombuffer(text, dtype=np.uint8), 0
    for start in range(0, len(signs), _IN_CACHE):
        part = signs[start : start + _IN_CACHE + 1]
        found += int(np.count_nonzero((part[:-1] == pair[0]) & (part[1:] == pair[1])))
    return found


_IN_CACHE = 1 << 16
