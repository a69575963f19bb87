from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from gpubench.node.workloads.base import WorkloadContext
from tests.workloads.running import Answers

if TYPE_CHECKING:
    from distributed import Client


# What a worker does while it has nothing to do takes a tenth of a core otherwise.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}


@pytest.fixture(scope="package")
def two_workers() -> Iterator[Client]:
    """Two real worker processes over TCP, shared by the folder: starting them costs more than using them.

    They end with the folder's last test, not with the session: workers that live on take processor time from others.
    """
    import dask
    import distributed

    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(QUIET))
        # A nanny sets PYTHONHASHSEED and others in the process that starts it. Campaigns of later tests would inherit
        # them, and their runs would warn of a dropped variable.
        with mock.patch.dict(os.environ):
            local = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", protocol="tcp"
                )
            )
        yield stack.enter_context(distributed.Client(local))


@pytest.fixture(scope="package")
def cluster(two_workers: Client) -> WorkloadContext:
    """What a workload is given to run on the two workers."""
    workers = sorted(two_workers.scheduler_info(n_workers=-1)["workers"])
    return WorkloadContext(two_workers, workers, 1, "cpu", "tcp")


@pytest.fixture(scope="module")
def answers(cluster: WorkloadContext) -> Iterator[Answers]:
    """Right answers, to be falsified."""
    made = Answers(cluster)
    yield made
    made.close()
