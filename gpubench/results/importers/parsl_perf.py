"""What parsl-perf measured: as it prints it, and as parsl-perf-runs archived it in the file store of MLflow.

It prints batches of tasks that do nothing, each sized by the rate of the last. The result is the last batch; those
before it bring it to size, and are kept as warm-ups. The figure is seconds per task, because batches of two runs are
hardly ever of one size. Lines are read by their words: positions in them have changed before.

In the store a run is a directory with params, tags and metrics as files. Only the last batch of a run was logged there.
Runs that were deleted in the tracker or failed are no results.
"""

import dataclasses
import datetime as dt
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpubench.results.importers.base import Format, Refused, Row, contradiction, plain_number, positive, whole

WORKLOAD = "parsl-task"
"""Seconds per task that does nothing."""

_BEGIN = re.compile(r"^==== Iteration (\d+) ====")
_PARTS = {
    "num_tasks": re.compile(r"^Will run (\d+) tasks"),
    "submission_s": re.compile(r"^Submission took (\d+(?:\.\d*)?) seconds"),
    "submission_tps": re.compile(r"^Submission took [\d.]+ seconds = (\d+(?:\.\d*)?) tasks/second"),
    "runtime_s": re.compile(r"^Runtime: (?:actual )?(\d+(?:\.\d*)?)s"),
    "target_s": re.compile(r"^Runtime: (?:actual )?[\d.]+s vs target (\d+(?:\.\d*)?)s?$"),
    "runtime_tps": re.compile(r"^Tasks per second: (\d+(?:\.\d*)?)"),
}
_ENDS = ("Tests complete", "The end")
"""Versions of 2023 and 2024 have only the second."""
_VERSION = re.compile(r"^(?:Parsl version:?\s*)?(\d{4}\.\d+\.\d+|\d+\.\d+\.\d+\S*)$", re.IGNORECASE)


@dataclasses.dataclass
class _Batch:
    number: int
    line: int
    run: int
    figures: dict[str, float]


def _read(path: Path, name: str) -> Iterator[Row | Refused]:
    """A row per batch, of one run or of several whose output went to one file."""
    batches: list[_Batch] = []
    run, version = 0, None
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if begin := _BEGIN.match(line):
            if int(begin[1]) == 1 and batches:
                yield from _rows(name, batches, version, ended=False)
                batches = []
            run += int(begin[1]) == 1
            batches.append(_Batch(int(begin[1]), number, run, {}))
        elif batches:
            for figure, pattern in _PARTS.items():
                if match := pattern.match(line):
                    batches[-1].figures[figure] = float(match[1])
            if line.startswith(_ENDS):
                yield from _rows(name, batches, version, ended=True)
                batches = []
        elif match := _VERSION.match(line.strip()):
            version = match[1]  # the configurations of parsl-perf-runs print it first
    if batches:
        yield from _rows(name, batches, version, ended=False)
    if not (run or batches):
        yield Refused(name, 1, "no output of parsl-perf: no line '==== Iteration 1 ===='")


def _rows(name: str, batches: list[_Batch], version: str | None, *, ended: bool) -> Iterator[Row | Refused]:
    for batch in batches:
        seconds, tasks = positive(batch.figures.get("runtime_s")), whole(batch.figures.get("num_tasks"))
        if seconds is None or tasks is None:
            yield Refused(name, batch.line, f"iteration {batch.number} is cut off, or has no time")
            continue
        if why := contradiction(seconds, tasks, batch.figures.get("runtime_tps")):
            yield Refused(name, batch.line, why)
            continue
        last = batch is batches[-1]
        if last and not ended:
            why = f"the output ends before '{_ENDS[0]}', so iteration {batch.number} may not be the last, which counts"
            yield Refused(name, batch.line, why)
            continue
        yield Row(
            file=name,
            line=batch.line,
            workload=WORKLOAD,
            wall_s=seconds / tasks,
            extra={**batch.figures, "iteration": batch.number, "iterations": len(batches), "parsl_version": version},
            run=f"{name}:{batch.run}",
            identity=(name, batch.line),
            variant=f"parsl {version}" if version else None,
            backend="parsl",
            rep=batch.number - 1,
            reps=tasks,
            warmup=not last,
        )


PARSL_PERF = Format(
    what="what parsl-perf printed",
    patterns=("*.out", "*.txt", "*.log"),
    read=_read,
    lacks=(
        "date",
        "executor",
        "workers",
        "nodes",
        "host",
        "UCX",
        "single tasks",
        "parsl's version, except if it was printed",
    ),
    caution="one thread submits the tasks: with more than a few workers, the figure is that of the client, not of the "
    "cluster",
)


_FINISHED = ("3", "FINISHED")
_HARDWARE = ("cores_per_node", "mem_per_node", "gpus_per_node")
"""On Kubernetes ``cores_per_node`` is that of a pod; elsewhere it is often the head node's, which is hardware, too."""
_CELL = (*_HARDWARE, "cores_per_worker", "nodes_per_block", "min_blocks", "max_blocks")
_TAGS = {"executor": "Parsl Executor", "provider": "Parsl Provider"}


def _read_run(path: Path, name: str) -> Iterator[Row | Refused]:
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
        yield Refused(name, 1, "exported by gpubench: read its campaign, which holds more")
    elif meta.get("lifecycle_stage") == "deleted":
        yield Refused(name, 1, "deleted in the tracker")
    elif meta.get("status") not in _FINISHED:
        yield Refused(name, 1, f"not finished (status {meta.get('status', 'not recorded')})")
    else:
        yield _run_row(name, meta, params, tags, metrics)


def _run_row(
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
    cell = {key: plain_number(params[key]) for key in _CELL if key in params}
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
        params=cell | {key: tags[tag] for key, tag in _TAGS.items() if tag in tags},
        nodes=None,
        rep=0,
        reps=tasks,
    )


def _meta(path: Path) -> dict[str, str]:
    """The flat YAML that MLflow writes: a key and a plain value per line."""
    pairs = (line.partition(":") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    return {key.strip(): value.strip().strip("'\"") for key, colon, value in pairs if colon}


def _texts(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []
    return {str(file.relative_to(folder)): file.read_text(encoding="utf-8", errors="replace").strip() for file in files}


def _metrics(folder: Path) -> tuple[dict[str, list[tuple[float, float, float]]], list[tuple[str, int]]]:
    """Time, value and step of every line by metric; and the lines that are none."""
    metrics: dict[str, list[tuple[float, float, float]]] = {}
    torn: list[tuple[str, int]] = []
    for metric, text in _texts(folder).items():
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                time, value, step = (float(word) for word in (*line.split(), "0")[:3])
            except ValueError:
                torn.append((metric, number))
            else:
                metrics.setdefault(metric, []).append((time, value, step))
    return metrics, torn


def _moment(text: str) -> dt.datetime | None:
    milliseconds = positive(text)
    try:
        return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC) if milliseconds else None
    except (OverflowError, OSError, ValueError):
        return None


MLFLOW = Format(
    what="MLflow's file store, as parsl-perf-runs archives it",
    patterns=("meta.yaml",),
    read=_read_run,
    lacks=(
        "workers that were there",
        "nodes",
        "host",
        "UCX",
        "all batches except the last",
        "when the benchmark began (only when it was logged)",
    ),
    caution=f"{PARSL_PERF.caution}; cores_per_node is that of a pod, or of the head node",
    by_place=True,
    has_others=True,
)
