"""``pdsh_results.jsonl`` of cudf-polars' benchmarks: an object per run, with a record per query and iteration.

https://docs.rapids.ai/api/cudf/stable/cudf_polars/benchmarks/. The seconds are of one query on data that lie in files.
With ``--io-mode hot`` iteration 0 warms the cache: a warm-up. Queries that failed, or whose answer did, are refused.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpubench.importers.base import Format, Refused, Row, day, numbered_lines, plain_number, positive, whole
from gpubench.spec.plain import parse_json

_CELL = ("scale_factor", "qualification", "io_mode", "suffix")
_LARGE = ("records", "plans")


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """Every record of every run."""
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            run = parse_json(line)
        except ValueError:
            yield Refused(name, number, "cut off, or not JSON")
            continue
        if not isinstance(run, dict) or not isinstance(run.get("records"), dict):
            yield Refused(name, number, "no run of cudf-polars' benchmarks: no records")
            continue
        for query, records in run["records"].items():
            for at, record in enumerate(records if isinstance(records, list) else [records]):
                if isinstance(record, dict):  # before 26.x the place in the list alone says which iteration it is
                    yield _row(name, number, run, {"iteration": at, **record, "query": query})
                else:
                    yield Refused(name, number, f"query {query}: no record")


def _row(name: str, line: int, run: Mapping[str, Any], record: Mapping[str, Any]) -> Row | Refused:
    query, iteration = record["query"], record["iteration"]
    where = f"query {query}, iteration {iteration}"
    if record.get("status", "success") != "success":
        last = (str(record.get("traceback", "")).strip().splitlines() or ["no reason recorded"])[-1]
        return Refused(name, line, f"{where} failed: {last[:200]}")
    validation = record.get("validation_result")
    if isinstance(validation, dict) and validation.get("status") != "Passed":
        return Refused(name, line, f"{where}: its answer was wrong: {str(validation.get('message'))[:200]}")
    seconds = positive(record.get("duration"))
    if seconds is None or isinstance(iteration, bool) or not isinstance(iteration, int):
        return Refused(name, line, f"{where}: duration {record.get('duration')!r} is no time")
    frontend, engine, run_id = run.get("frontend"), run.get("engine_name"), run.get("run_id")
    return Row(
        file=name,
        line=line,
        workload=str(run.get("query_set") or "pdsh"),
        wall_s=seconds,
        extra=record,
        run=str(run_id or f"{name}:{line}"),
        identity=(str(run_id or (name, line)), query, iteration),
        date=day(str(run.get("timestamp", ""))),
        backend=str(frontend) if frontend else None,
        params={"query": plain_number(query)} | {key: plain_number(run[key]) for key in _CELL if run.get(key)},
        workers=whole(run.get("n_workers")),
        device="gpu" if engine == "cudf-polars" else "cpu" if engine else None,
        rep=iteration,
        warmup=run.get("io_mode") == "hot" and iteration == 0,
        answer="ok" if validation else "unchecked",
        documents={"run": {key: value for key, value in run.items() if key not in _LARGE}},
    )


FORMAT = Format(
    what="pdsh_results.jsonl of cudf-polars' benchmarks",
    patterns=("*.jsonl",),
    read=read,
    lacks=("UCX version", "transport", "nodes", "hosts", "start of an iteration"),
    caution="a run takes its queries in one fixed order, and all runs of a version on a date give one figure",
)
