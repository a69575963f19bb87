"""MLflow's file store, as parsl-perf-runs archives it: a directory per run with params, tags and metrics as files.

Only the last batch of a run was logged there. Runs that were deleted in the tracker or failed are no results.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpubench.importers.base import Format, Refused, Row, contradiction, plain_number, positive, whole
from gpubench.importers.parsl_perf import WORKLOAD

_FINISHED = ("3", "FINISHED")
_HARDWARE = ("cores_per_node", "mem_per_node", "gpus_per_node")
"""On Kubernetes ``cores_per_node`` is that of a pod; elsewhere it is often the head node's, which is hardware, too."""
_CELL = (*_HARDWARE, "cores_per_worker", "nodes_per_block", "min_blocks", "max_blocks")
_TAGS = {"executor": "Parsl Executor", "provider": "Parsl Provider"}


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """The run that ``meta.yaml`` is of; that of an experiment is none."""
    meta = _meta(path)
    if "run_id" not in meta and "run_uuid" not in meta:
        if "experiment_id" not in meta:
            yield Refused(name, 1, "neither a run nor an experiment of MLflow")
        return
    folder = path.parent
    params, tags = _texts(folder / "params"), _texts(folder / "tags")
    metrics, torn = _metrics(folder / "metrics")
    yield from (
        Refused(f"{Path(name).parent}/metrics/{metric}", line, "no metric: time, value, step") for metric, line in torn
    )
    if "gpubench.campaign" in tags:
        yield Refused(name, 1, "exported by gpubench: its campaign says more; read that")
    elif meta.get("lifecycle_stage") == "deleted":
        yield Refused(name, 1, "deleted in the tracker")
    elif meta.get("status") not in _FINISHED:
        yield Refused(name, 1, f"not finished (status {meta.get('status', 'not recorded')})")
    else:
        yield _row(name, meta, params, tags, metrics)


def _row(
    name: str,
    meta: Mapping[str, str],
    params: Mapping[str, str],
    tags: Mapping[str, str],
    metrics: Mapping[str, list[tuple[float, float, float]]],
) -> Row | Refused:
    last = {metric: max(points, key=lambda point: (point[2], point[0]))[1] for metric, points in metrics.items()}
    seconds, tasks = positive(last.get("runtime_s")), whole(last.get("num_tasks"))
    if seconds is None or tasks is None:
        return Refused(name, 1, "no metrics runtime_s and num_tasks: no run of parsl-perf")
    if why := contradiction(seconds, tasks, last.get("runtime_tps")):
        return Refused(name, 1, why)
    version, started = tags.get("Parsl version"), _moment(meta.get("start_time", ""))
    run = meta.get("run_id") or meta["run_uuid"]
    known = {key: plain_number(params[key]) for key in _CELL if key in params}
    return Row(
        file=name,
        line=1,
        workload=WORKLOAD,
        wall_s=seconds / tasks,
        extra={"meta": dict(meta), "params": dict(params), "tags": dict(tags), "metrics": dict(metrics)},
        run=run,
        identity=(run,),
        date=started.date() if started else None,
        variant=f"parsl {version}" if version else None,
        backend="parsl",
        params=known | {key: tags[tag] for key, tag in _TAGS.items() if tag in tags},
        nodes=None,
        rep=0,
        reps=tasks,
    )


def _meta(path: Path) -> dict[str, str]:
    """The flat YAML that MLflow writes: a key and a plain value per line."""
    pairs = (line.partition(":") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    return {key.strip(): value.strip().strip("'\"") for key, colon, value in pairs if colon}


def _texts(folder: Path) -> dict[str, str]:
    files = sorted(one for one in folder.rglob("*") if one.is_file()) if folder.is_dir() else []
    return {str(one.relative_to(folder)): one.read_text(encoding="utf-8", errors="replace").strip() for one in files}


def _metrics(folder: Path) -> tuple[dict[str, list[tuple[float, float, float]]], list[tuple[str, int]]]:
    """Time, value and step of every line by metric; and the lines that are none."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    torn: list[tuple[str, int]] = []
    for metric, text in _texts(folder).items():
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                time, value, step = (float(word) for word in (*line.split(), "0")[:3])
            except ValueError:
                torn.append((metric, number))
            else:
                found.setdefault(metric, []).append((time, value, step))
    return found, torn


def _moment(text: str) -> dt.datetime | None:
    milliseconds = positive(text)
    try:
        return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC) if milliseconds else None
    except (OverflowError, OSError, ValueError):
        return None


FORMAT = Format(
    what="MLflow's file store, as parsl-perf-runs archives it",
    patterns=("meta.yaml",),
    read=read,
    lacks=(
        "workers that were there",
        "nodes",
        "host",
        "UCX",
        "batches but the last",
        "when the benchmark began (only when it was logged)",
    ),
    caution="one thread submits the tasks: beyond a few workers the figure is the client's, not the cluster's; "
    "cores_per_node is that of a pod, or of the head node",
    by_place=True,
    has_others=True,
)
