"""The samples of many runs at once, as long as every line is whole: nearly always. Pure.

A million lines one by one are 20 s of Python. What is odd in any way isn't judged here: then there is no answer, and
``lines`` finds out what is wrong with which line.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import polars as pl

from gpubench.merge.lines import FIRST_DAY, LAST_DAY, LEAST_S, MOST_REPS, MOST_S
from gpubench.merge.read import RunFiles
from gpubench.spec.plain import canonical
from gpubench.spec.records import ANSWERS

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
}
"""Fields of ``SampleLine`` and their types."""
_MOMENT = "%Y-%m-%dT%H:%M:%S%.f%:z"
_AT = "at"


def whole_samples(runs: Sequence[RunFiles]) -> pl.DataFrame | None:
    """Every sample of ``runs``, run after run in their order; None where a line isn't exactly a sample.

    Returns:
        ``at`` is the run's place in ``runs``; besides ``workload backend params workload_status`` of the run's record
        and ``rep warmup wall_s bytes answer started_at`` of the line.
    """
    counts = [run.samples.count("\n") for run in runs]
    texts = [run.samples for run in runs]
    if any(not _is_plain(text, count) for text, count in zip(texts, counts, strict=True)):
        return None
    try:
        lines = (
            pl.read_ndjson(io.BytesIO("".join(texts).encode()), schema=LINE)
            if sum(counts)
            else pl.DataFrame(schema=LINE)
        )
    except pl.exceptions.PolarsError:
        return None
    if lines.height != sum(counts):
        return None
    places = pl.Series(_AT, np.repeat(np.arange(len(runs), dtype=np.uint32), counts))
    joined = (
        lines.rename({"workload": "said_workload", "backend": "said_backend"})
        .with_columns(
            places, pl.col("started_at").str.to_datetime(_MOMENT, time_unit="us", time_zone="UTC", strict=False)
        )
        .join(_workloads(runs), on=[_AT, "params_id"], how="left", maintain_order="left")
    )
    return joined.drop("params_id", "said_workload", "said_backend") if _is_right(joined) else None


def _is_plain(text: str, count: int) -> bool:
    """Whether it ends with a whole line, and has as many fields as so many samples: polars would drop one too many."""
    return (not text or text.endswith("\n")) and text.count('":') == count * len(LINE)


def _is_right(joined: pl.DataFrame) -> bool:
    if not joined.height:
        return True
    rules = (
        ~pl.any_horizontal(pl.all().is_null())
        & pl.col("rep").is_between(0, MOST_REPS, closed="left")
        & (pl.col("bytes") >= 0)
        & pl.col("wall_s").is_between(LEAST_S, MOST_S, closed="none")
        & pl.col("started_at").is_between(FIRST_DAY, LAST_DAY, closed="left")
        & (pl.col("said_workload") == pl.col("workload"))
        & (pl.col("said_backend") == pl.col("backend"))
        & pl.col("answer").is_in(list(ANSWERS))
    )
    return bool(joined.select(rules.all()).item())


def _workloads(runs: Sequence[RunFiles]) -> pl.DataFrame:
    rows = [
        (at, one.params_id, one.workload, one.backend, canonical(one.params).decode(), one.status)
        for at, run in enumerate(runs)
        for one in {workload.params_id: workload for workload in run.record.workloads}.values()
    ]
    text = pl.String()
    names = ("params_id", "workload", "backend", "params", "workload_status")
    return pl.DataFrame(rows, schema={_AT: pl.UInt32(), **dict.fromkeys(names, text)}, orient="row")
