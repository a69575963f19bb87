"""The lines of one ``samples.jsonl``, checked. Pure."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Mapping

from gpubench.errors import DataError
from gpubench.spec import SampleLine
from gpubench.spec.records import ANSWERS, WorkloadRecord

_FIELDS = frozenset(field.name for field in dataclasses.fields(SampleLine))
MOST_REPS = 2**31
"""The table's column of them is this narrow."""
LEAST_S, MOST_S = 0.0, 1e8
"""No repetition takes no time, and none three years."""
FIRST_DAY, LAST_DAY = dt.datetime(2000, 1, 1, tzinfo=dt.UTC), dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
"""Between them every repetition begins: what stands in a record was never taken from a calendar of other times."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


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
            parsed.samples.append(_sample(json.loads(line), known))
        except json.JSONDecodeError:
            if number == len(lines):
                parsed.warnings.append(f"{source}: the last line ({number}) was cut off and is left out")
            else:
                parsed.errors.append(DataError(f"{source}, line {number}: cut off or not JSON"))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            parsed.errors.append(DataError(f"{source}, line {number}: {error}"))
    return parsed


def _sample(plain: object, known: Mapping[str, WorkloadRecord]) -> tuple[SampleLine, int]:
    if not isinstance(plain, dict) or plain.keys() != _FIELDS:
        raise ValueError(f"not a sample with exactly the fields {' '.join(sorted(_FIELDS))}")
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
    return line, _microseconds(line.started_at)


def _is_count(value: object, below: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def _microseconds(text: str) -> int:
    moment = dt.datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    if not FIRST_DAY <= moment < LAST_DAY:
        raise ValueError(f"started_at = {text} is no time of a measurement")
    return (moment - _EPOCH) // _MICROSECOND
