"""A worker of a standing cluster says where its task threads may run, or that they are all busy."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gpubench.node import inspect_process


class Worker:
    """What of a worker is asked."""

    address = "tcp://127.0.0.1:1"

    def __init__(self, tasks: ThreadPoolExecutor) -> None:
        self.executors = {"default": tasks}


def answer(tasks: ThreadPoolExecutor, answer_s: float) -> dict[str, Any]:
    return asyncio.run(inspect_process.of_worker(Worker(tasks), answer_s))


def test_cpus_are_those_of_a_thread_that_runs_tasks() -> None:
    cpu = min(os.sched_getaffinity(0))
    with ThreadPoolExecutor(1) as tasks:
        tasks.submit(os.sched_setaffinity, 0, {cpu}).result()  # of that thread only
        found = answer(tasks, 60.0)
    assert found["allowed"] == [cpu]
    assert set(found["cpus"]) >= os.sched_getaffinity(0)


def test_a_worker_whose_threads_are_all_busy_says_so_and_is_left_alone() -> None:
    free = threading.Event()
    with ThreadPoolExecutor(1) as tasks:
        busy = tasks.submit(free.wait)
        found = answer(tasks, 0.01)
        free.set()
        assert busy.result()
    assert found["error"] == "no answer within 0.01 s"
    assert "allowed" not in found


def test_a_worker_that_is_not_asked_for_its_cpus_needs_no_thread() -> None:
    with ThreadPoolExecutor(1) as tasks:
        found = answer(tasks, 0.0)
    assert (found["role"], found["ucx"], "allowed" in found) == ("worker", "none", False)
