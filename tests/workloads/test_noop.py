"""Back-end dask-noop: the graph of the real one, of tasks that do nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import dask.array
import pytest
from dask._task_spec import convert_legacy_graph

from gpubench.workloads import dask_compat, families, noop
from gpubench.workloads.base import WorkloadContext
from tests.workloads.running import Answers, complete, measured_rightly

pytestmark = pytest.mark.integration

WORKLOADS: list[tuple[str, dict[str, Any]]] = [
    ("merge", {"rows_per_worker": 2000}),
    ("merge", {"rows_per_worker": 2000, "join": "broadcast", "base_chunks": 4}),
    ("transpose-sum", {"size": 250, "chunk": 100}),
]


@pytest.mark.parametrize(("name", "params"), WORKLOADS, ids=str)
def test_empty_tasks_are_counted_and_none_is_computed(
    cluster: WorkloadContext, name: str, params: dict[str, Any]
) -> None:
    result = measured_rightly(cluster, name, params, backend="dask-noop", moves=False)
    assert result.details["wrong"] == 0
    assert result.details["results"] == result.details["expected"] > 0


@pytest.mark.parametrize("falsify", [lambda results: results[1:], lambda results: [*results[1:], 3.5]])
@pytest.mark.parametrize(("name", "params"), WORKLOADS, ids=str)
def test_a_missing_or_a_computed_result_is_called_wrong(
    answers: Answers, name: str, params: dict[str, Any], falsify: Callable[[Any], Any]
) -> None:
    answers.called_wrong(name, params, falsify, backend="dask-noop")


@pytest.mark.parametrize(("name", "params"), WORKLOADS, ids=str)
def test_the_graph_keeps_its_keys_and_what_each_of_them_waits_for(
    cluster: WorkloadContext, name: str, params: dict[str, Any]
) -> None:
    real = families.create(name, cluster, "dask", complete(name, params))
    assert isinstance(real, noop.LazyMeasurement)
    try:
        real.setup()
        real.prepare()
        graph, keys = dask_compat.materialised(cluster.client, real.lazy())
        empty = dask_compat.with_tasks_replaced(graph, noop.nothing)
        assert set(graph) >= set(empty) >= set(keys)
        assert waiting_for(empty) == waiting_for(graph)
    finally:
        real.teardown()


def waiting_for(graph: dict[Any, Any]) -> dict[Any, set[Any]]:
    """As the scheduler reads a graph: a future under its own key is no node of it."""
    return {key: set(node.dependencies) for key, node in convert_legacy_graph(graph).items()}


def test_inputs_that_lie_on_workers_are_not_replaced(cluster: WorkloadContext) -> None:
    held = cluster.client.persist(dask.array.ones(4, chunks=2))
    graph, keys = dask_compat.materialised(cluster.client, held)
    values = cluster.client.gather(
        cluster.client.get(dask_compat.with_tasks_replaced(graph, noop.nothing), keys, sync=False)
    )
    assert [list(value) for value in values] == [[1.0, 1.0], [1.0, 1.0]]


def test_the_time_of_replacing_tasks_is_not_counted(cluster: WorkloadContext, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(noop.time, "perf_counter", lambda: float(next(clock)))
    measurement = families.create("transpose-sum", cluster, "dask-noop", {"size": 20, "chunk": 10})
    try:
        measurement.prepare()
        seconds, _ = measurement.once()
    finally:
        measurement.teardown()
    assert seconds == 30.0 - 10.0


def test_a_workload_without_a_graph_cannot_run_empty(cluster: WorkloadContext, monkeypatch: pytest.MonkeyPatch) -> None:
    promised = dataclasses.replace(families.CATALOGUE["tasks"], backends=("dask-noop",))
    monkeypatch.setitem(families.CATALOGUE, "tasks", promised)
    with pytest.raises(ValueError, match="no graph of its own"):
        families.create("tasks", cluster, "dask-noop", complete("tasks", {"count": 1}))
