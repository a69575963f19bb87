"""Workload `tasks` on a real cluster: its modes, its clients, its oracle."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.workloads import dask_compat, families, process_reaper, tasks
from gpubench.node.workloads.base import WorkloadContext
from gpubench.node.workloads.task_clients import MARK, Clients, TaskBatch, TaskClientError
from tests.workloads.running import Answers, complete, measured_rightly, run

pytestmark = pytest.mark.integration
LADDER = {"mode": "explicit", "batches": [3, 5], "count": 50}


@pytest.mark.parametrize(
    ("params", "sizes"),
    [({"count": 4}, [4]), (LADDER, [3, 5]), ({"count": 5, "argsize": 1000}, [5]), ({"count": 5, "clients": 2}, [5])],
    ids=str,
)
def test_every_batch_of_every_repetition_is_kept_and_adds_up(
    cluster: WorkloadContext, params: dict[str, Any], sizes: list[int]
) -> None:
    result = measured_rightly(cluster, "tasks", params, moves=False, reps=2)
    kept = result.details["repetitions"]
    assert [[batch["tasks"] for batch in repetition] for repetition in kept] == [sizes] * 3
    for batch in [batch for repetition in kept for batch in repetition]:
        assert 0 < batch["submit_s"] <= batch["run_s"]
        assert batch["tasks_per_s"] == pytest.approx(batch["tasks"] / batch["run_s"])
        latency = batch["latency_s"]
        assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["max"] <= batch["run_s"]
    assert result.details["results"] == sum(sizes)


def test_a_sample_is_the_seconds_of_count_tasks_at_the_rate_of_the_last_batch(cluster: WorkloadContext) -> None:
    result, lines = run(families.create("tasks", cluster, "dask", complete("tasks", LADDER)))
    last = [repetition[-1] for repetition in result.details["repetitions"]]
    assert [line["wall_s"] for line in lines] == [pytest.approx(50 / batch["tasks_per_s"]) for batch in last]


def falsified(**changes: Any) -> Callable[[list[TaskBatch]], list[TaskBatch]]:
    def falsify(batches: list[TaskBatch]) -> list[TaskBatch]:
        return [TaskBatch(**{**vars(batches[0]), **changes}), *batches[1:]]

    return falsify


@pytest.mark.parametrize(
    "falsify",
    [
        falsified(results={"7": 2}),
        falsified(results={"7": 2, "8": 1}),
        falsified(results={"7": 4}),
        falsified(results={"7.0": 3}),
        falsified(count=4),
        lambda _batches: [],
    ],
)
def test_a_lost_an_additional_or_another_result_is_called_wrong(
    answers: Answers, falsify: Callable[[list[TaskBatch]], list[TaskBatch]]
) -> None:
    answers.called_wrong("tasks", LADDER, falsify)


def test_every_call_carries_padding_of_its_own(cluster: WorkloadContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "seven", len_of)
    assert tasks.DaskSubmitter(cluster.client, 1000).batch(3).results == {"(1000, True)": 3}


def len_of(padding: str) -> tuple[int, bool]:
    return len(padding), padding.isdigit()


def test_when_results_are_ready_is_seen_without_a_callback_each_and_only_while_asked(cluster: WorkloadContext) -> None:
    before = dict(cluster.client._stream_handlers)
    with dask_compat.finish_times(cluster.client) as times:
        futures = cluster.client.map(abs, range(3), pure=False)
        cluster.client.gather(futures)
    assert {future.key for future in futures} <= set(times)
    assert dict(cluster.client._stream_handlers) == before


def test_a_repetition_does_not_begin_among_the_leavings_of_the_one_before(cluster: WorkloadContext) -> None:
    def known(dask_scheduler: Any) -> int:
        return len(dask_scheduler.tasks)

    measurement = families.create("tasks", cluster, "dask", complete("tasks", {"count": 500}))
    measurement.setup()
    for _ in range(3):
        measurement.prepare()
        assert cluster.client.run_on_scheduler(known) == 0
        measurement.once()
    measurement.teardown()


def test_a_submitting_process_that_dies_is_a_failure_and_leaves_nothing(
    cluster: WorkloadContext, tmp_path: Path
) -> None:
    clients = Clients("tasks:OwnClient", [tasks.facts(cluster, 0)] * 2)
    assert clients.batch(3).results == {"7": 3}
    mine = [pid for pid, mark in process_reaper.marked(MARK, bool).items() if mark == clients._mark]
    assert len(mine) == 2
    clients._processes[0].kill()
    with pytest.raises(TaskClientError, match=r"ended with exit code -9|is gone"):
        clients.batch(2)
    clients.close()
    assert process_reaper.marked(MARK, clients._mark.__eq__) == {}
    assert not clients._folder.exists()


def test_a_client_that_can_not_be_built_says_why() -> None:
    with pytest.raises(TaskClientError, match=r"^KeyError: 'scheduler'$"):
        Clients("tasks:OwnClient", [{}])
