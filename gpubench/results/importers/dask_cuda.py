"""``BASE.json`` of dask-cuda's benchmarks: a pandas table column by column.

The bandwidths of its links (``BASE.npy``, ``BASE.address_map.json``) are no times of a workload, and aren't read. A row
is one timed repetition (``wallclock``), since dask-cuda 22.08. What the files don't say, their place often does:
``outputs/20220711/ucx-1.12.1/``, and ``BASE-20220712.1.json`` is a rerun of that day.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpubench.node.spec.plain import parse_json
from gpubench.results.importers.base import Format, Refused, Row, day, plain_number, positive, whole

_RERUN = re.compile(r"-(\d{8})\.(\d+)$")
_GROUPS = ("rows_per_chunk", "in_parts", "unique_ratio", "sort", "split_out", "split_every", "shuffle")
_KINDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("frac_match", "merge", ("rows_per_chunk", "frac_match", "base_chunks", "other_chunks", "broadcast")),
    ("unique_ratio", "groupby", _GROUPS),
    ("partition_size", "shuffle", ("partition_size", "in_parts")),
    ("kernel_size", "map-overlap", ("user_size", "chunk_size", "kernel_size")),
    ("user_size", "array-operation", ("operation", "user_size", "user_second_size", "user_chunk_size")),
)
"""A field that only this benchmark has, our name of it, and the fields that say what was measured."""

_DEVICES = {"cudf": "gpu", "cupy": "gpu", "gpu": "gpu", "pandas": "cpu", "numpy": "cpu", "cpu": "cpu"}


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """The repetitions of one file."""
    try:
        table = parse_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        yield Refused(name, 1, "no text")
        return
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        yield Refused(name, line, "cut off, or not JSON")
        return
    rows = _rows(table)
    if not rows:
        yield Refused(name, 1, "no table of a dask-cuda benchmark: no wallclock by row")
        return
    beside = _beside(path)
    for number, fields in enumerate(rows):
        yield _row(path, name, number + 1, fields, beside)


def _rows(table: Any) -> list[dict[str, Any]]:
    """Row by row; empty where it is no such table. A row that a column lacks has None there."""
    if not isinstance(table, dict) or not table or not all(isinstance(column, dict) for column in table.values()):
        return []
    if "wallclock" not in table:
        return []
    index = sorted({key for column in table.values() for key in column}, key=lambda key: (len(key), key))
    return [{column: values.get(key) for column, values in table.items()} for key in index]


def _beside(path: Path) -> dict[str, Any]:
    """What other files say of the same run or environment."""
    documents: dict[str, Any] = {}
    for file in ("version-info.json", "environment-info.json"):
        try:
            documents[file.removesuffix(".json")] = parse_json((path.parent / file).read_bytes())
        except (OSError, ValueError):
            continue
    return documents


def _facts(path: Path, fields: Mapping[str, Any], beside: Mapping[str, Any]) -> dict[str, Any]:
    kind, params = next(((ours, names) for mark, ours, names in _KINDS if mark in fields), (path.stem, ()))
    if kind == "array-operation":
        kind = str(fields.get("operation") or ("transpose_sum" if "transpose" in path.stem else kind)).replace("_", "-")
    parts = path.resolve().parent.parts
    rerun = _RERUN.search(path.stem)
    dates = [date for part in parts if len(part) == 8 and (date := day(part))]
    versions = [part.removeprefix("ucx-") for part in parts if re.match(r"ucx-\d|ucx-master", part)]
    stated = beside.get("version-info", {})
    word = next((str(fields[key]) for key in ("dataframe_type", "array_type", "merge_type") if fields.get(key)), "")
    return {
        "workload": kind,
        "params": {key: plain_number(fields[key]) for key in params if fields.get(key) is not None},
        "date": (day(rerun[1]) if rerun else None) or (dates[-1] if dates else None),
        "variant": versions[-1] if versions else None,
        "ucx_version": versions[-1] if versions else (stated.get("ucx") if isinstance(stated, dict) else None),
        "backend": fields.get("backend"),
        "workers": whole(fields.get("num_workers")),
        "threads_per_worker": whole(fields.get("worker_threads")),
        "protocol": fields.get("protocol"),
        "device": _DEVICES.get(word),
        "documents": beside,
    }


def _row(path: Path, name: str, number: int, fields: Mapping[str, Any], beside: Mapping[str, Any]) -> Row | Refused:
    seconds, size = positive(fields["wallclock"]), positive(fields.get("data_processed"))
    if seconds is None:
        return Refused(name, number, f"wallclock {fields['wallclock']!r} is no time")
    return Row(
        file=name,
        line=number,
        wall_s=seconds,
        extra=fields,
        run=name.removesuffix(".json"),
        identity=(name, number),
        rep=number - 1,
        bytes=int(size) if size else None,
        **_facts(path, fields, beside),
    )


FORMAT = Format(
    what="BASE.json of dask-cuda's benchmarks, with version-info.json where it stands",
    patterns=("*.json",),
    leave=("*.address_map.json", "version-info.json", "environment-info.json", "scheduler-*.json", "import.json"),
    read=read,
    lacks=(
        "UCX version and date, except in the path",
        "nodes",
        "job",
        "order within a date",
        "host",
        "start of a repetition",
    ),
    caution="the position in the job is not recorded, and may be confounded with the version",
    by_place=True,
)
