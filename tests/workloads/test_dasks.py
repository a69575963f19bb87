"""Differences between dask versions, on stand-ins for versions that aren't installed here."""

from __future__ import annotations

import collections
import time
import types
from typing import Any

import pytest

from gpubench.workloads import dasks
from gpubench.workloads.base import Context


@pytest.mark.parametrize("name", ["transfer_incoming_log", "incoming_transfer_log"])
def test_the_transfer_log_is_found_under_both_names_and_loses_its_bound(name: str) -> None:
    worker = types.SimpleNamespace(**{name: collections.deque([{"total": 1}], maxlen=2)})
    log = dasks.incoming_log(worker)
    for total in (2, 3, 4):
        getattr(worker, name).append({"total": total})
    assert [entry["total"] for entry in log] == [1, 2, 3, 4]
    assert dasks.incoming_log(worker) is log


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
    assert dasks.registrations(scheduler) == [11.0, 12.0]


@pytest.mark.integration
def test_a_real_scheduler_knows_when_its_workers_registered(cluster: Context) -> None:
    from gpubench.node.probe import worker_registrations

    now = time.time()
    registered = cluster.client.run_on_scheduler(worker_registrations)
    assert len(registered) == len(cluster.workers)
    assert now - 3600 < registered[0] <= registered[1] < now


def test_the_shuffle_keyword_follows_the_signature() -> None:
    def new(right: Any, shuffle_method: Any = None) -> None: ...

    def old(right: Any, shuffle: Any = None) -> None: ...

    assert dasks.task_shuffle(new) == {"shuffle_method": "tasks"}
    assert dasks.task_shuffle(old) == {"shuffle": "tasks"}
