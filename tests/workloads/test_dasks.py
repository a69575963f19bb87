"""Differences between dask versions, on stand-ins for versions that aren't installed here."""

from __future__ import annotations

import collections
import types
from typing import Any

import pytest

from gpubench.workloads import dasks


@pytest.mark.parametrize("name", ["transfer_incoming_log", "incoming_transfer_log"])
def test_the_transfer_log_is_found_under_both_names_and_loses_its_bound(name: str) -> None:
    worker = types.SimpleNamespace(**{name: collections.deque([{"total": 1}], maxlen=2)})
    log = dasks.incoming_log(worker)
    for total in (2, 3, 4):
        getattr(worker, name).append({"total": total})
    assert [entry["total"] for entry in log] == [1, 2, 3, 4]
    assert dasks.incoming_log(worker) is log


def test_the_shuffle_keyword_follows_the_signature() -> None:
    def new(right: Any, shuffle_method: Any = None) -> None: ...

    def old(right: Any, shuffle: Any = None) -> None: ...

    assert dasks.task_shuffle(new) == {"shuffle_method": "tasks"}
    assert dasks.task_shuffle(old) == {"shuffle": "tasks"}
