"""Where workers may run: bound rightly, too tightly, packed, with more threads than CPUs, two on one GPU."""

from collections.abc import Sequence
from typing import Any

import pytest

from gpubench.node.spec.near_gpu import cpu_list
from gpubench.plan.cluster_checks import check_count, check_libraries, check_versions, host_lines
from gpubench.plan.cpu_affinity import WorkerAffinity, judge_affinity


def worker(number: int, allowed: Sequence[int], *, threads: int = 1, **more: Any) -> dict[str, Any]:
    """On a node of 8 cores with 4 hyper-threads each, two NUMA nodes: Summit's numbering."""
    return {
        "name": f"worker-0-{number}",
        "threads": threads,
        "host": "n1",
        "allowed": list(allowed),
        "cpus": list(range(32)),
        "cores": {str(cpu): cpu // 4 * 4 for cpu in range(32)},
        "numa": {"0": list(range(16)), "8": list(range(16, 32))},
        "gpus": "",
        **more,
    }


def reasons(workers: Sequence[dict[str, Any]], cpus: int | None = None) -> list[str]:
    return [one.why for one in judge_affinity(workers, cpus)]


def on_a_core_each(count: int, threads: int = 1) -> list[dict[str, Any]]:
    return [worker(number, range(4 * number, 4 * number + 4), threads=threads) for number in range(count)]


TOO_TIGHTLY = "4 CPUs for 8 threads: bound too tightly (jsrun --bind rs, OMP_PROC_BIND=FALSE)"
ON_ONE_CPU = "2 workers with 2 threads packed on 1 of 32 CPUs"
EVERY_CPU = [worker(number, [number]) for number in range(32)]


@pytest.mark.parametrize(
    ("workers", "cpus", "expected"),
    [
        (on_a_core_each(6), None, [""] * 6),
        ([worker(number, range(32)) for number in range(6)], None, [""] * 6),
        # As jsrun does it where it isn't told otherwise: each has CPUs enough.
        ([worker(at, range(4)) for at in range(4)], None, ["4 workers with 4 threads packed on 1 of 8 cores"] * 4),
        ([worker(0, range(4), threads=2)], None, ["1 worker with 2 threads packed on 1 of 8 cores"]),
        ([worker(0, range(4), threads=8)], None, [TOO_TIGHTLY]),
        # Hyper-threads count where there are more threads than cores.
        (EVERY_CPU, None, [""] * 32),
        ([*EVERY_CPU, worker(32, [0])], None, [ON_ONE_CPU, *[""] * 31, ON_ONE_CPU]),
        (on_a_core_each(2, threads=4), None, ["1 worker with 4 threads packed on 1 of 8 cores"] * 2),
        (on_a_core_each(2, threads=4), 1, ["", ""]),
        (on_a_core_each(1), 8, ["4 of 8 CPUs: bound too tightly (jsrun --bind rs, OMP_PROC_BIND=FALSE)"]),
        (on_a_core_each(1), 2, ["1 worker for 2 CPUs packed on 1 of 8 cores"]),
    ],
)
def test_workers_are_right_or_bound_too_tightly_or_packed(
    workers: list[dict[str, Any]], cpus: int | None, expected: list[str]
) -> None:
    assert reasons(workers, cpus) == expected


def test_a_right_worker_is_described_with_its_cpus_and_its_numa_node() -> None:
    assert judge_affinity(on_a_core_each(5))[3:] == [
        WorkerAffinity("worker-0-3", "n1", "12-15", ">= 1", "0", "-", ""),
        WorkerAffinity("worker-0-4", "n1", "16-19", ">= 1", "8", "-", ""),
    ]


def test_more_threads_than_the_node_has_are_only_said() -> None:
    found = judge_affinity([worker(number, range(32), threads=20) for number in range(2)])
    assert [(one.why, one.note) for one in found] == [("", "more threads than CPUs: 40 threads on 32 CPUs")] * 2


def test_two_workers_on_one_gpu_and_a_worker_that_gave_no_answer_are_wrong() -> None:
    workers = [worker(0, [0], gpus="0,1"), worker(1, [4], gpus="1,0"), worker(2, [8], gpus="0")]
    first, second, third = reasons(workers)
    assert (first, second, third) == ("shares GPU 0 with worker-0-0, worker-0-2", "", first)
    other_host = worker(3, [8], gpus="1", host="n2")
    assert reasons([workers[1], other_host]) == ["", ""]
    silent = {"name": "worker-0-4", "threads": 1, "error": "no answer within 60 s"}
    assert judge_affinity([silent]) == [WorkerAffinity("worker-0-4", "?", "?", "", "", "", "no answer within 60 s")]


def test_a_gpu_worker_is_bound_as_in_a_run_or_not_at_all() -> None:
    place = {"device": "4", "near": list(range(16, 32)), "unknown": "", "step": list(range(32))}
    found = judge_affinity(
        [worker(number, cpus, gpus=str(number), gpu=place) for number, cpus in enumerate([range(16, 32), range(16)])]
    )
    assert [one.why for one in found] == ["", "has GPU 4, and is bound to CPUs 0-15 instead of 16-31"]
    (unbound,) = judge_affinity([worker(0, range(32), gpus="4", gpu=place)])
    assert (unbound.why, unbound.note) == ("", "not bound to CPUs 16-31 near GPU 4")
    (unknown,) = judge_affinity([worker(0, range(4), gpus="4", gpu={**place, "near": [], "unknown": "error 3"})])
    assert (unknown.why, unknown.note) == ("", "")


def test_cpus_are_spelled_as_the_kernel_does() -> None:
    assert [cpu_list(cpus) for cpus in ([], [3], [0, 1], [8, 0, 1, 2])] == ["", "3", "0-1", "0-2,8"]


SAME = {"python": "3.11", "dask": "2025.7.0", "distributed": "2025.7.0", "numpy": "2.0"}


def test_versions_that_must_agree_are_wrong_where_they_dont_and_others_only_said() -> None:
    versions = {"client": SAME, "scheduler": SAME, "tcp://a:1": SAME, "tcp://b:1": {**SAME, "dask": "2023.3.2"}}
    (agree, differ) = check_versions(versions)
    assert agree.ok
    assert agree.what == "python 3.11, distributed 2025.7.0, numpy 2.0 in client, scheduler and 2 workers"
    assert (differ.ok, differ.what) == (False, "dask 2025.7.0, but tcp://b:1 2023.3.2")
    (_, said) = check_versions({**versions, "tcp://b:1": {**SAME, "numpy": "1.26"}})
    assert (said.ok, said.what) == (True, "numpy 2.0, but tcp://b:1 1.26")
    bare = {name: version for name, version in SAME.items() if name != "numpy"}
    (_, one_has_it) = check_versions({**dict.fromkeys(versions, bare), "client": SAME})
    assert one_has_it.what == "numpy none, but client 2.0"
    (_, one_lacks_it) = check_versions({**dict.fromkeys(versions, SAME), "client": bare})
    assert one_lacks_it.what == "numpy 2.0, but client none"


def test_another_ucx_than_the_planned_one_is_wrong() -> None:
    processes = [
        {"role": role, "address": role, "ucx": loaded, "packages": "p"}
        for role, loaded in (("scheduler", "1.19.0"), ("worker", "1.17.0"))
    ]
    (wrong,) = check_libraries(processes, "1.19.0")
    assert (wrong.ok, wrong.what) == (False, "UCX 1.19.0, but worker worker 1.17.0")
    assert not next(check_libraries(processes[:1], "none")).ok
    alike = [processes[0], {**processes[0], "role": "worker"}, {**processes[0], "role": "worker", "packages": "q"}]
    right, others = check_libraries(alike, None)
    assert (right.ok, right.what) == (True, "UCX 1.19.0 is loaded in scheduler and 2 workers")
    assert (others.ok, others.what) == (True, "2 different sets of packages, which may or may not matter")
    without = [{**one, "ucx": "none"} for one in alike[:2]]
    assert [finding.what for finding in check_libraries(without, "none")] == [
        "no UCX is loaded in scheduler and 1 workers"
    ]


def test_workers_are_counted_and_told_by_host() -> None:
    workers = [
        {"host": host, "threads": 2, "memory_limit": 2**30, "gpus": gpu} for host, gpu in (("a", "0"), ("b", "0,1"))
    ]
    assert list(host_lines(workers)) == [
        "2 workers, 4 threads, 2.0 GiB, 2 GPUs on 2 hosts",
        "  a: 1 worker, 2 threads, 1.0 GiB, 1 GPU",
        "  b: 1 worker, 2 threads, 1.0 GiB, 1 GPU",
    ]


@pytest.mark.parametrize(
    ("workers", "planned", "ok", "what"),
    [
        (0, None, False, "0 workers"),
        (1, None, True, "1 workers"),
        (2, 3, False, "2 of 3 workers"),
        (3, 3, True, "3 of 3 workers"),
    ],
)
def test_there_are_as_many_workers_as_planned_or_at_least_one(
    workers: int, planned: int | None, ok: bool, what: str
) -> None:
    found = check_count(workers, planned)
    assert (found.ok, found.what) == (ok, what)
