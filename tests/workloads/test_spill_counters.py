"""Counters of spilled bytes in a real worker of distributed."""

import asyncio
from typing import Any

import distributed
import pytest

from gpubench.node.workloads import dask_compat


@pytest.mark.integration
def test_a_worker_whose_heartbeat_waits_for_a_metric_survives_the_start_of_counting() -> None:
    """As a GPU worker does for NVML's figures: a heartbeat that fails closes its worker."""

    async def count_within_a_heartbeat() -> tuple[Any, Any]:
        waits, goes_on = asyncio.Event(), asyncio.Event()

        async def slow(_worker: Any) -> str:
            waits.set()
            await goes_on.wait()
            return "its figures"

        addresses = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        async with (
            distributed.Scheduler(port=0, **addresses) as scheduler,
            distributed.Worker(scheduler.address, **addresses) as worker,
        ):
            worker.metrics = {"gpu": slow}
            heartbeat = asyncio.create_task(worker.get_metrics())
            await waits.wait()
            dask_compat.count_spilling(worker)
            goes_on.set()
            return await heartbeat, await worker.get_metrics()

    before, after = asyncio.run(count_within_a_heartbeat())
    assert (before["gpu"], after["gpu"]) == ("its figures", "its figures")
    assert after[dask_compat.SPILLED] == {"from_gpu": 0, "to_disk": 0}
