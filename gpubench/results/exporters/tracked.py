"""A campaign as runs of a tracker, with the names that parsl-perf-runs uses and ours; MLflow is imported here alone.

A tracker is told after the fact. One that is down costs a line and an exit code, no benchmark waits for it."""

import contextlib
import dataclasses
import datetime as dt
import importlib
import os
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.errors import MissingToolError
from gpubench.model.plan import Plan
from gpubench.model.secrets import without_login
from gpubench.node.spec import RunRecord
from gpubench.node.spec.plain import content_id
from gpubench.stats.data import CellRun
from gpubench.stats.verdict import Verdict
from gpubench.store.accounting import RunResult

CAMPAIGN, RUN, CONTENT = "gpubench.campaign", "gpubench.run", "gpubench.content"
"""Tags by which an export is known again; CONTENT is set last, so that a torn export is seen to be one."""

_REFUSED = re.compile(r"[^\w.\-/ ]+")


@dataclasses.dataclass(frozen=True)
class Tracked:
    """One run of a tracker. Metrics are (name, value, milliseconds, step); ``artifacts`` are files by folder."""

    name: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Sequence[tuple[str, float, int, int]]
    started_ms: int
    ended_ms: int
    failed: bool = False
    artifacts: Sequence[tuple[Path, str]] = ()

    @property
    def content(self) -> str:
        """The hash of all that is said; files count by name and size."""
        files = [(path.name, folder, path.stat().st_size) for path, folder in self.artifacts]
        return content_id([self.name, dict(self.tags), dict(self.params), list(self.metrics), self.failed, files])


def campaign(
    plan: Plan,
    verdicts: Sequence[Verdict],
    names: Sequence[str],
    outcomes: Sequence[RunResult],
    artifacts: Sequence[tuple[Path, str]],
) -> Tracked:
    """The run that holds the others: what was planned, what came out.

    Args:
        verdicts: with ``names`` of their cells.
        names: short ones that tell the cells apart.
        outcomes: of all its runs; it ended with the last.
    """
    at = _ms(plan.created_at)
    tags = {CAMPAIGN: plan.campaign, "site": plan.site.name, "suite": plan.suite, "gpubench": plan.gpubench}
    metrics = []
    for verdict, name in zip(verdicts, names, strict=True):
        tags[_name(f"verdict/{name}/{verdict.candidate}")] = verdict.verdict
        if verdict.effect is not None:
            effect = _name(f"effect/{name}/{verdict.candidate} vs {verdict.baseline}")
            metrics.append((effect, verdict.effect, at, 0))
    params = {
        "variants": " ".join(variant.label for variant in plan.variants),
        "protocol": plan.protocol,
        "device": plan.device,
        "margin": f"{plan.margin:g}",
        "seed": str(plan.seed),
    }
    ends = [_ms(outcome.record.ended_at) for outcome in outcomes if outcome.record]
    return Tracked(plan.campaign, tags, params, metrics, at, max(ends, default=at), artifacts=artifacts)


def runs(
    plan: Plan, outcomes: Iterable[RunResult], cells: Iterable[CellRun], names: Mapping[str, str]
) -> Iterator[Tracked]:
    """A run per run that has a record: its samples as steps, and of each workload that is ok the mean, which counts.

    A tracker's tables show the last step of a metric: the mean is one of its own. The figures of the last batches have
    parsl-perf's names.

    Args:
        cells: of all runs.
        names: of the workloads, by ``params_id``.
    """
    by_run: dict[str, list[CellRun]] = {}
    for cell in cells:
        by_run.setdefault(cell.run, []).append(cell)
    for outcome in outcomes:
        record = outcome.record
        if record is None:
            continue
        started, ended = _ms(record.started_at), _ms(record.ended_at)
        metrics = []
        for cell in by_run.get(outcome.run.run, []):
            name = names[dict(cell.key)["params_id"]]
            metrics += [(_name(f"{name}/wall_s"), seconds, started, step) for step, seconds in enumerate(cell.wall_s)]
            if cell.times:
                metrics.append((_name(f"{name}/mean_s"), statistics.fmean(cell.times), started, 0))
        yield Tracked(
            f"block {outcome.block.block} {outcome.run.variant}",
            {CAMPAIGN: plan.campaign, RUN: outcome.run.run, **_tags(record), "reason": outcome.why[:500]},
            _params(record),
            [*metrics, *_parsl_perf(record, started)],
            started,
            ended,
            failed=record.status != "ok",
        )


def _tags(record: RunRecord) -> dict[str, str]:
    tags = {"status": record.status, "variant": record.variant, "site": record.site}
    parsl = any(workload.backend == "parsl" for workload in record.workloads)
    return tags | ({"Parsl Executor": "HighThroughputExecutor"} if parsl else {})


def _params(record: RunRecord) -> dict[str, str]:
    """``cores_per_node`` is what the workers had: the original took the head node's."""
    cores = record.workers_per_node * record.threads_per_worker
    names = ["ucx_version", "image", "protocol", "device", "nodes", "workers_per_node", "threads_per_worker"]
    values = {name: getattr(record, name) for name in (*names, "block", "order")}
    values |= {"cores_per_node": cores, "max_nodes": record.nodes, "max_cores": record.nodes * cores}
    return {name: str(value) for name, value in values.items()}


def _parsl_perf(record: RunRecord, at: int) -> Iterator[tuple[str, float, int, int]]:
    """Of the last repetition's last batch; a run that measures tasks with several parameters says it of the first."""
    for workload in record.workloads:
        batches = _last_batches(workload.details) if workload.workload == "tasks" else []
        if not batches:
            continue
        last = batches[-1]
        figures = {
            "num_iterations": len(batches),
            "num_tasks": last.get("tasks"),
            "submission_s": last.get("submit_s"),
            "submission_tps": last.get("submit_per_s"),
            "runtime_s": last.get("run_s"),
            "runtime_tps": last.get("tasks_per_s"),
        }
        for name, value in figures.items():
            if isinstance(value, int | float):
                yield name, float(value), at, 0
        return


def _last_batches(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    kept = details.get("repetitions")
    last = kept[-1] if isinstance(kept, list) and kept else []
    return [batch for batch in last if isinstance(batch, Mapping)] if isinstance(last, list) else []


def _ms(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


def _name(text: str) -> str:
    """Trackers take letters, digits, blanks and ``_.-/`` in names."""
    return _REFUSED.sub("_", text)[:250]


EXPERIMENT = "gpubench"
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "DO_NOT_TRACK": "true",
}
"""Unless the user says otherwise: a tracker that is down is to be said now, not after minutes."""

_PARENT = "mlflow.parentRunId"
_BATCH, _TAGS = 1000, 100
_EXPORTS = "gpubench.exports"


class Tracker:
    """A tracking server, or a database file. No message repeats a login of its address.

    Raises:
        MissingToolError: MLflow isn't installed, or the tracker doesn't answer.
    """

    def __init__(self, uri: str, artifacts: Path | None) -> None:
        for name, value in _PATIENCE.items():
            os.environ.setdefault(name, value)
        try:
            mlflow: Any = importlib.import_module("mlflow")
        except ImportError:
            raise MissingToolError(
                "MLflow isn't installed with gpubench", then="install it there: pip install 'mlflow>=3.5'"
            ) from None
        self._name = without_login(uri)
        self._entities: Any = importlib.import_module("mlflow.entities")
        self._failures = (mlflow.exceptions.MlflowException, OSError)
        with self._asked():
            self._client = mlflow.MlflowClient(tracking_uri=uri)
            self._experiment = self._find_experiment(artifacts)

    def export(self, campaign: Tracked, runs: Iterable[Tracked]) -> tuple[int, int]:
        """The campaign's run with the others nested in it; how many were written, and how many were there already.

        A run that says the same already is left alone, one that says something else is replaced. The campaign's is
        brought up to date instead: the others hang on it, and its effects over the exports are a series.
        """
        with self._asked():
            earlier = self._earlier_runs(campaign.name)
            parent, fresh = self._put(campaign, earlier.get(""), None)
            written = [fresh, *(self._put(run, earlier.get(run.tags[RUN]), parent)[1] for run in runs)]
        return sum(written), len(written) - sum(written)

    def _find_experiment(self, artifacts: Path | None) -> str:
        experiment = self._client.get_experiment_by_name(EXPERIMENT)
        if experiment is not None:
            return str(experiment.experiment_id)
        location = artifacts.resolve().as_uri() if artifacts else None
        return str(self._client.create_experiment(EXPERIMENT, artifact_location=location))

    def _earlier_runs(self, campaign: str) -> dict[str, Any]:
        """Runs of earlier exports by their run; the campaign's own by an empty one."""
        query, earlier, token = f"tags.`{CAMPAIGN}` = '{campaign}'", {}, None
        while True:
            page = self._client.search_runs([self._experiment], query, max_results=_BATCH, page_token=token)
            earlier.update({run.data.tags.get(RUN, ""): run for run in page})
            token = page.token
            if not token:
                return earlier

    def _put(self, tracked: Tracked, before: Any, parent: str | None) -> tuple[str, bool]:
        nested = {_PARENT: parent} if parent else {}
        if before is not None:
            tags = before.data.tags
            if tags.get(CONTENT) == tracked.content and tags.get(_PARENT) == parent:
                return str(before.info.run_id), False
            if parent:
                self._client.delete_run(before.info.run_id)
        exports = int(before.data.tags.get(_EXPORTS, "1")) if before is not None and not parent else 0
        tags = {**tracked.tags, **nested, **({} if parent else {_EXPORTS: str(exports + 1)})}
        run_id = str(before.info.run_id) if exports else self._create(tracked)
        entities = self._entities
        metrics = [entities.Metric(name, value, at, step + exports) for name, value, at, step in tracked.metrics]
        params = [entities.Param(name, value) for name, value in tracked.params.items()]
        self._client.log_batch(run_id, params=params)
        run_tags = [entities.RunTag(*pair) for pair in tags.items()]
        for start in range(0, len(run_tags), _TAGS):
            self._client.log_batch(run_id, tags=run_tags[start : start + _TAGS])
        for start in range(0, len(metrics), _BATCH):
            self._client.log_batch(run_id, metrics=metrics[start : start + _BATCH])
        for path, folder in tracked.artifacts:
            self._client.log_artifact(run_id, str(path), folder or None)
        self._client.set_terminated(run_id, "FAILED" if tracked.failed else "FINISHED", tracked.ended_ms)
        self._client.set_tag(run_id, CONTENT, tracked.content)
        return run_id, True

    def _create(self, tracked: Tracked) -> str:
        tags = {name: tracked.tags[name] for name in (CAMPAIGN, RUN) if name in tracked.tags}
        run = self._client.create_run(self._experiment, start_time=tracked.started_ms, tags=tags, run_name=tracked.name)
        return str(run.info.run_id)

    @contextlib.contextmanager
    def _asked(self) -> Iterator[None]:
        """Its failures as one of ours."""
        try:
            yield
        except self._failures as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise MissingToolError(
                f"the tracker at {self._name} doesn't take it: {without_login(first)[:300]}",
                then="correct this, then export again: finished parts are not written twice",
            ) from None
