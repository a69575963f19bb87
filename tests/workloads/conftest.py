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
    """A scheduler and two workers over TCP, shared by the folder: starting them costs more than using them.

    The scheduler is a process of its own, as in a run. In one process, client and scheduler share dask's table of live
    expressions (``SingletonExpr._instances``): one that the client drops while the scheduler unpickles its twin is a
    ``KeyError`` (dask/_expr.py:880@2026.8.0).

    They end with the folder's last test, not with the session: workers that live on take processor time from others.
    """
    import dask
    import distributed
    from distributed.deploy.subprocess import SubprocessCluster

    with contextlib.ExitStack() as stack:
        quiet = {"DASK_INTERNAL_INHERIT_CONFIG": dask.config.serialize(QUIET)}
        with mock.patch.dict(os.environ, quiet):
            local = stack.enter_context(
                SubprocessCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0")
            )
        client = stack.enter_context(distributed.Client(local))
        client.wait_for_workers(2, timeout=60)
        yield client


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
