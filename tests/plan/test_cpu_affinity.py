"""Where workers may run: bound rightly, too tightly, packed, with more threads than CPUs, two on one GPU."""

from __future__ import annotations

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


def test_one_core_for_each_worker_is_right() -> None:
    found = judge_affinity([worker(number, range(4 * number, 4 * number + 4)) for number in range(6)])
    assert [(one.why, one.allowed, one.numa) for one in found[3:5]] == [("", "12-15", "0"), ("", "16-19", "8")]
    assert {(one.host, one.expected, one.gpu, one.note) for one in found} == {("n1", ">= 1", "-", "")}


def test_workers_that_may_run_anywhere_on_a_large_enough_node_are_right() -> None:
    assert reasons([worker(number, range(32)) for number in range(6)]) == [""] * 6


def test_jsruns_default_packs_workers_on_one_core_though_each_has_cpus_enough() -> None:
    packed = "4 workers with 4 threads packed on 1 of 8 cores"
    assert reasons([worker(number, range(4)) for number in range(4)]) == [packed] * 4


def test_a_worker_of_many_threads_on_one_core_is_bound_too_tightly() -> None:
    assert reasons([worker(0, range(4), threads=8)]) == [
        "4 CPUs for 8 threads: bound too tightly (jsrun --bind rs, OMP_PROC_BIND=FALSE)"
    ]
    assert reasons([worker(0, range(4), threads=2)]) == ["1 worker with 2 threads packed on 1 of 8 cores"]


def test_hyper_threads_count_where_there_are_more_threads_than_cores() -> None:
    every_cpu = [worker(number, [number]) for number in range(32)]
    assert reasons(every_cpu) == [""] * 32
    assert set(reasons([*every_cpu, worker(32, [0])])[1:32]) == {""}
    assert reasons([*every_cpu, worker(32, [0])])[0] == "2 workers with 2 threads packed on 1 of 32 CPUs"


def test_more_threads_than_the_node_has_are_only_said() -> None:
    found = judge_affinity([worker(number, range(32), threads=20) for number in range(2)])
    assert [(one.why, one.note) for one in found] == [("", "more threads than CPUs: 40 threads on 32 CPUs")] * 2


def test_what_is_expected_can_be_said() -> None:
    bound = [worker(number, range(4 * number, 4 * number + 4), threads=4) for number in range(2)]
    assert reasons(bound)[0].startswith("1 worker with 4 threads packed on 1 of 8")
    assert reasons(bound, cpus=1) == ["", ""]


def test_two_workers_on_one_gpu_and_a_worker_that_gave_no_answer_are_wrong() -> None:
    workers = [worker(0, [0], gpus="0,1"), worker(1, [4], gpus="1,0"), worker(2, [8], gpus="0")]
    assert reasons(workers) == ["shares GPU 0 with worker-0-0, worker-0-2", "", workers_why(workers)]
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


def workers_why(workers: Sequence[dict[str, Any]]) -> str:
    return judge_affinity(workers)[2].why


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
        "  a: 1 worker, 2 threads, 1.0 GiB, 1 GPUs",
        "  b: 1 worker, 2 threads, 1.0 GiB, 1 GPUs",
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
