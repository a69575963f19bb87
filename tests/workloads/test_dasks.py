"""Differences between dask versions, on stand-ins for versions that aren't installed here."""

import collections
import types
from typing import Any

import pytest

from gpubench.node.workloads import dask_compat


def test_the_transfer_log_loses_its_bound() -> None:
    worker = types.SimpleNamespace(transfer_incoming_log=collections.deque([{"total": 1}], maxlen=2))
    log = dask_compat.incoming_log(worker)
    for total in (2, 3, 4):
        worker.transfer_incoming_log.append({"total": total})
    assert [entry["total"] for entry in log] == [1, 2, 3, 4]
    assert dask_compat.incoming_log(worker) is log


def test_registrations_are_the_first_of_each_worker_that_is_still_there() -> None:
    events = [
        (12.0, {"action": "add-worker", "worker": "b"}),
        (11.0, {"action": "add-worker", "worker": "a"}),
        (13.0, {"action": "add-worker", "worker": "gone"}),
        (14.0, {"action": "remove-worker", "worker": "gone"}),
        (15.0, {"action": "add-worker", "worker": "a"}),
        (16.0, "restart"),
    ]
    scheduler = types.SimpleNamespace(get_events=lambda topic: events if topic == "all" else [], workers={"a", "b"})
    assert dask_compat.registrations(scheduler) == [11.0, 12.0]


def test_the_shuffle_keyword_follows_the_signature() -> None:
    def new(right: Any, shuffle_method: Any = None) -> None: ...

    def old(right: Any, shuffle: Any = None) -> None: ...

    assert dask_compat.task_shuffle(new) == {"shuffle_method": "tasks"}
    assert dask_compat.task_shuffle(old) == {"shuffle": "tasks"}


def test_cleaning_empties_both_logs_and_the_functions_that_old_workers_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {b"function": object()}
    monkeypatch.setattr("distributed.worker.cache_loads", kept, raising=False)
    names = ("transfer_incoming_log", "transfer_outgoing_log")
    worker = types.SimpleNamespace(**{name: collections.deque([{"total": 1}] * 3, maxlen=10) for name in names})
    dask_compat.clean(worker)
    assert [len(getattr(worker, name)) for name in names] == [0, 0]
    assert kept == {}


def worker(**changes: Any) -> Any:
    metrics = {"memory": 100, "spilled_bytes": {"memory": 0, "disk": 0}} | changes.pop("metrics", {})
    facts = {"name": "w", "status": types.SimpleNamespace(name="running"), "memory_limit": 200, "metrics": metrics}
    return types.SimpleNamespace(**facts | changes)


@pytest.mark.parametrize(
    ("one", "paused", "spilled", "from_gpu"),
    [
        (worker(status=types.SimpleNamespace(name="paused")), True, 0, 0),
        (worker(metrics={"spilled_bytes": {"memory": 9, "disk": 5}}), False, 5, 0),
        (worker(metrics={dask_compat.SPILLED: {"from_gpu": 3, "to_disk": 0}}), False, 0, 3),
        (worker(metrics={dask_compat.SPILLED: {"from_gpu": 3, "to_disk": 2}}), False, 2, 3),
    ],
)
def test_a_worker_short_of_memory_is_paused_or_has_spilled(one: Any, paused: bool, spilled: int, from_gpu: int) -> None:
    scheduler = types.SimpleNamespace(workers={"tcp://a": one, "tcp://b": worker(), "tcp://c": worker(metrics={})})
    assert dask_compat.short_of_memory(scheduler) == {
        "tcp://a": {"name": "w", "paused": paused, "used": 100, "spilled": spilled, "from_gpu": from_gpu, "limit": 200}
    }
