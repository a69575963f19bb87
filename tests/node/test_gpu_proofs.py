"""Is every GPU worker where it should be, and does it allocate and send GPU memory as planned?"""

import contextlib
from typing import Any

import pytest

from gpubench.node.gpu_proofs import (
    check_affinity,
    check_at_start,
    check_cuda_module,
    check_gpus,
    check_pools,
    check_pools_kept,
)
from gpubench.node.proofs import CheckError
from tests.node.specs_by_hand import run_spec


def gpu_worker(device: str, near: list[int], affinity: list[int], *, unknown: str = "", **more: Any) -> dict[str, Any]:
    place = {"device": device, "near": near, "unknown": unknown, "step": [0, 1, 2, 3]}
    return {"name": f"worker-0-0-{device}", "pid": 7, "host": "n0", "affinity": affinity, "gpu": place, **more}


def test_a_gpu_worker_on_the_cpus_near_its_gpu_is_right() -> None:
    assert check_affinity([gpu_worker("0", [0, 1], [0, 1]), gpu_worker("1", [2, 3], [2, 3])]) == []


@pytest.mark.parametrize("affinity", [[2, 3], [0], [0, 1, 2], [0, 1, 2, 3]])
def test_a_gpu_worker_on_any_other_cpus_is_named(affinity: list[int]) -> None:
    with pytest.raises(
        CheckError, match=r"^worker-0-0-0 \(pid 7 on n0\) has GPU 0, and is bound to CPUs .* instead of 0-1$"
    ):
        check_affinity([gpu_worker("1", [2, 3], [2, 3]), gpu_worker("0", [0, 1], affinity)])


def test_where_the_step_lacks_cpus_near_a_gpu_one_line_says_so() -> None:
    hosts = ["n0", "n1", "n2"]
    workers = [gpu_worker(device, [8, 9], [0, 1, 2, 3], host=host) for device in "45" for host in hosts]
    workers += [gpu_worker("6", [3, 4], [3]), gpu_worker("0", [0, 1], [0, 1])]
    workers += [gpu_worker("7", [], [0, 1], unknown="error 3")]
    assert check_affinity(workers) == [
        "GPU workers may not use all CPUs near their GPUs: 1 of the 2 CPUs 3-4 near GPU 6 on n0; "
        "NVML says no CPUs (error 3) near GPU 7 on n0; none of the 2 CPUs 8-9 near GPU 4,5 on n0, n1 and 1 more"
    ]


def test_a_gpu_worker_must_be_on_the_cpus_near_its_gpu_that_the_step_has() -> None:
    with pytest.raises(CheckError, match=r"is bound to CPUs 0-3 instead of 3$"):
        check_affinity([gpu_worker("6", [3, 4], [0, 1, 2, 3])])


@pytest.mark.parametrize(
    ("planned", "used", "is_right"),
    [("0000:c1:00", "0000:c1:00", True), ("", "0000:c1:00", True), ("0000:c1:00", "", True), ("0:1", "0:2", False)],
)
def test_a_worker_that_computes_on_another_gpu_than_its_own_is_named(planned: str, used: str, is_right: bool) -> None:
    workers = [gpu_worker("3", [0], [0], on_bus={"planned": planned, "used": used})]
    said = r"^worker-0-0-3 .* computes on the GPU at 0:2, and has GPU 3, which is at 0:1 "
    with contextlib.nullcontext() if is_right else pytest.raises(CheckError, match=said):
        check_gpus(workers)


POOL = 1 << 30
WORKER = {"name": "worker-0-0", "address": "w0", "pid": 7, "host": "a"}
NONE: dict[str, Any] = {"resources": ["CudaMemoryResource"], "pool_bytes": 0, "arrays": "rmm"}
SOME: dict[str, Any] = {"resources": ["PoolMemoryResource", "CudaMemoryResource"], "pool_bytes": POOL, "arrays": "rmm"}
ASYNC: dict[str, Any] = {"resources": ["CudaAsyncMemoryResource"], "pool_bytes": 0, "arrays": "rmm"}


@pytest.mark.parametrize(
    ("wanted", "found", "refused"),
    [
        (str(POOL), SOME, ""),
        (str(POOL + 100), SOME, ""),
        (str(2 * POOL), SOME, "allocates with PoolMemoryResource over CudaMemoryResource of 1073741824 bytes"),
        (
            str(POOL),
            NONE,
            "allocates with CudaMemoryResource of 0 bytes, arrays by rmm, the site wants the memory pool 1073741824",
        ),
        (str(POOL), {}, "has no RMM, the site wants the memory pool 1073741824"),
        ("none", NONE, ""),
        ("none", SOME, "the site wants the memory pool none"),
        ("none", ASYNC, "allocates with CudaAsyncMemoryResource"),
        ("default", SOME, ""),
        ("default", {}, ""),
    ],
)
def test_a_memory_pool_that_the_site_does_not_want_fails_the_run(
    wanted: str, found: dict[str, Any], refused: str
) -> None:
    spec = run_spec(device="gpu", rmm_pool=wanted)
    with pytest.raises(CheckError, match=refused) if refused else contextlib.nullcontext():
        check_pools(spec, [{**WORKER, "memory_pool": found}])


def allocating(name: str, **pool: Any) -> dict[str, Any]:
    return {**WORKER, "name": name, "address": name, "memory_pool": {**SOME, **pool}}


def test_workers_that_allocate_arrays_in_two_ways_are_named() -> None:
    workers = [allocating("w0"), allocating("w1"), allocating("w2", arrays="cupy")]
    with pytest.raises(CheckError, match=r"^w0 \(pid 7 on a\) allocates arrays by rmm, w2 \(pid 7 on a\) by cupy$"):
        check_pools(run_spec(device="gpu"), workers)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({}, ""),
        ({"pool_bytes": 2 * POOL}, "of 1073741824 bytes, arrays by rmm before, PoolMemoryResource over .* 2147483648"),
        ({"resources": ["CudaAsyncMemoryResource"]}, "before, CudaAsyncMemoryResource of"),
        ({"arrays": "cupy"}, "arrays by rmm before, .* arrays by cupy after it$"),
    ],
)
def test_a_workload_after_which_a_worker_allocates_in_another_way_fails_the_run(
    after: dict[str, Any], said: str
) -> None:
    workers = [allocating("w0"), allocating("w1")]
    now = {"w0": {"memory_pool": SOME}, "w1": {"memory_pool": {**SOME, **after}}}
    changed = pytest.raises(CheckError, match=rf"^merge changed how w1 \(pid 7 on a\) allocates: .*{said}")
    with changed if said else contextlib.nullcontext():
        check_pools_kept("merge", workers, now)


def test_a_worker_whose_ucx_has_no_module_for_gpu_memory_is_named() -> None:
    there = {**WORKER, "ucx": {"cuda_module": ["/image/libuct_cuda.so.0"]}}
    check_cuda_module(run_spec(device="gpu", protocol="ucx"), [there])
    lacking = {**WORKER, "ucx": {"cuda_module": []}}
    check_cuda_module(run_spec(device="gpu"), [lacking])
    with pytest.raises(CheckError, match=r"^worker-0-0 \(pid 7 on a\) has UCX without its module for GPU memory"):
        check_cuda_module(run_spec(device="gpu", protocol="ucx"), [there, lacking])


def test_of_workers_on_the_cpu_nothing_is_asked() -> None:
    assert check_at_start(run_spec(protocol="ucx", rmm_pool="none"), [WORKER]) == []
