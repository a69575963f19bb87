from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpubench.workloads.base import WorkloadContext
from tests.workloads.running import Answers


@pytest.fixture(scope="session")
def cluster() -> Iterator[WorkloadContext]:
    """Two real worker processes over TCP, shared by the folder: starting them costs more than using them."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", protocol="tcp"
        ) as local,
        distributed.Client(local) as client,
    ):
        yield WorkloadContext(client, sorted(client.scheduler_info(n_workers=-1)["workers"]), 1, "cpu", "tcp")


@pytest.fixture(scope="module")
def answers(cluster: WorkloadContext) -> Iterator[Answers]:
    """Right answers, to be falsified."""
    made = Answers(cluster)
    yield made
    made.close()
