"""MLflow, and nothing but: the one file that imports it.

A tracker is told after the fact. One that is down costs a line and an exit code, no benchmark waits for it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpubench.errors import MissingToolError
from gpubench.exporters.tracked import CAMPAIGN, CONTENT, RUN, Tracked
from gpubench.model.secrets import without_login

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
                "MLflow isn't installed beside gpubench", then="install it with: pip install 'gpubench[mlflow]'"
            ) from None
        self._name = without_login(uri)
        self._entities: Any = importlib.import_module("mlflow.entities")
        self._failures = (mlflow.exceptions.MlflowException, OSError)
        self._client = self._said(lambda: mlflow.MlflowClient(tracking_uri=uri))
        self._experiment = self._said(lambda: self._find_experiment(artifacts))

    def export(self, campaign: Tracked, runs: Iterable[Tracked]) -> tuple[int, int]:
        """The campaign's run with the others nested in it; how many were written, and how many were there already.

        A run that says the same already is left alone, one that says something else is replaced. The campaign's is
        brought up to date instead: the others hang on it, and its effects over the exports are a series.
        """
        there = self._said(lambda: self._there(campaign.name))
        written = kept = 0
        parent, fresh = self._said(lambda: self._put(campaign, there.get(""), None))
        written, kept = written + fresh, kept + (not fresh)
        for one in runs:
            before = there.get(one.tags[RUN])
            _, fresh = self._said(lambda one=one, before=before: self._put(one, before, parent))
            written, kept = written + fresh, kept + (not fresh)
        return written, kept

    def _find_experiment(self, artifacts: Path | None) -> str:
        found = self._client.get_experiment_by_name(EXPERIMENT)
        if found is not None:
            return str(found.experiment_id)
        location = artifacts.resolve().as_uri() if artifacts else None
        return str(self._client.create_experiment(EXPERIMENT, artifact_location=location))

    def _there(self, campaign: str) -> dict[str, Any]:
        """Runs of earlier exports by their run; the campaign's own by an empty one."""
        asked, found, token = f"tags.`{CAMPAIGN}` = '{campaign}'", {}, None
        while True:
            page = self._client.search_runs([self._experiment], asked, max_results=_BATCH, page_token=token)
            found.update({run.data.tags.get(RUN, ""): run for run in page})
            token = page.token
            if not token:
                return found

    def _put(self, one: Tracked, before: Any, parent: str | None) -> tuple[str, bool]:
        nested = {_PARENT: parent} if parent else {}
        if before is not None:
            tags = before.data.tags
            if tags.get(CONTENT) == one.content and tags.get(_PARENT) == parent:
                return str(before.info.run_id), False
            if parent:
                self._client.delete_run(before.info.run_id)
        exports = int(before.data.tags.get(_EXPORTS, "1")) if before is not None and not parent else 0
        tags = {**one.tags, **nested, **({} if parent else {_EXPORTS: str(exports + 1)})}
        run_id = str(before.info.run_id) if exports else self._create(one)
        entities = self._entities
        metrics = [entities.Metric(name, value, at, step + exports) for name, value, at, step in one.metrics]
        params = [entities.Param(name, value) for name, value in one.params.items()]
        self._client.log_batch(run_id, params=params)
        said = [entities.RunTag(*pair) for pair in tags.items()]
        for start in range(0, len(said), _TAGS):
            self._client.log_batch(run_id, tags=said[start : start + _TAGS])
        for start in range(0, len(metrics), _BATCH):
            self._client.log_batch(run_id, metrics=metrics[start : start + _BATCH])
        for path, folder in one.artifacts:
            self._client.log_artifact(run_id, str(path), folder or None)
        self._client.set_terminated(run_id, "FAILED" if one.failed else "FINISHED", one.ended_ms)
        self._client.set_tag(run_id, CONTENT, one.content)
        return run_id, True

    def _create(self, one: Tracked) -> str:
        known = {name: one.tags[name] for name in (CAMPAIGN, RUN) if name in one.tags}
        run = self._client.create_run(self._experiment, start_time=one.started_ms, tags=known, run_name=one.name)
        return str(run.info.run_id)

    def _said(self, act: Any) -> Any:
        try:
            return act()
        except self._failures as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise MissingToolError(
                f"the tracker at {self._name} doesn't take it: {without_login(first)[:300]}",
                then="see to it, then export again: what is there already is not written twice",
            ) from None
