"""Checks of GPU workers: their CPUs, their memory, and UCX's part for GPU memory."""

from typing import Any, List, Mapping, Sequence

from gpubench.node.proofs import CheckError, ProcessFacts
from gpubench.node.spec import RunSpec, near_gpu
from gpubench.node.workloads.ucx import CUDA_MODULE

RMM_ALIGNMENT = 256
"""dask-cuda rounds the size of a pool down to multiples of that many bytes, as RMM allocates."""


def check_at_start(spec: RunSpec, workers: Sequence[ProcessFacts]) -> List[str]:
    """Every GPU worker's place, memory and UCX; warnings about what can't be proved. Nothing to do on the CPU."""
    if spec.device != "gpu":
        return []
    check_gpus(workers)
    check_pools(spec, workers)
    check_cuda_module(spec, workers)
    blind = not all(worker["spilling_is_seen"] for worker in workers)
    return [*check_affinity(workers), *([UNSEEN] if blind else [])]


def check_gpus(workers: Sequence[ProcessFacts]) -> None:
    """Every worker computes on the GPU that it was given, whose CPUs, memory and energy are looked at by NVML's number.

    CUDA counts otherwise with another CUDA_DEVICE_ORDER, or if it was started before the worker's variables were set.
    """
    for worker in workers:
        planned, used = worker["on_bus"]["planned"], worker["on_bus"]["used"]
        if planned and used and planned != used:
            raise CheckError(
                "{} computes on the GPU at {}, and has GPU {}, which is at {} (CUDA_DEVICE_ORDER?)".format(
                    _who(worker), used, worker["gpu"]["device"], planned
                )
            )


UNSEEN = "what GPU workers spill can't be seen: they don't keep results in dask-cuda's DeviceHostFile (JIT-unspill?)"


def check_affinity(workers: Sequence[ProcessFacts]) -> List[str]:
    """Every GPU worker is on the CPUs near its own GPU, as far as its step has them; a warning where it hasn't all.

    Raises:
        CheckError: it is on others.
    """
    for worker in workers:
        wrong = near_gpu.misplaced(worker["gpu"], worker["affinity"])
        if wrong:
            raise CheckError(f"{_who(worker)} {wrong}")
    return near_gpu.warning(workers)


def check_cuda_module(spec: RunSpec, workers: Sequence[ProcessFacts]) -> None:
    """UCX has loaded its module for GPU memory in every worker."""
    for worker in workers if spec.protocol == "ucx" else ():
        if not worker["ucx"]["cuda_module"]:
            raise CheckError(
                f"{_who(worker)} has UCX without its module for GPU memory ({CUDA_MODULE}): the image has none, or one "
                "whose libraries aren't found here (UCX_LOG_LEVEL=debug names them)"
            )


def check_pools(spec: RunSpec, workers: Sequence[ProcessFacts]) -> None:
    """Every GPU worker's memory pool is as the site requires, as RMM itself reports (``device.memory_pool``).

    Arrays are allocated in the same way in all of them.
    """
    for worker in workers:
        if worker["memory_pool"] and worker["memory_pool"]["arrays"] != workers[0]["memory_pool"].get("arrays"):
            allocators = [(_who(other), other["memory_pool"].get("arrays")) for other in (workers[0], worker)]
            raise CheckError("{} allocates arrays by {}, {} by {}".format(*allocators[0], *allocators[1]))
    if spec.rmm_pool == "default":
        return
    planned = 0 if spec.rmm_pool == "none" else int(spec.rmm_pool) // RMM_ALIGNMENT * RMM_ALIGNMENT
    for worker in workers:
        pool = worker["memory_pool"]
        if not pool:
            raise CheckError(f"{_who(worker)} has no RMM, the site wants the memory pool {spec.rmm_pool}")
        # An asynchronous resource is a pool too, of CUDA's own.
        pools = [name for name in pool["resources"] if "Pool" in name or "Async" in name or "Arena" in name]
        if pool["pool_bytes"] != planned or bool(pools) != bool(planned):
            raise CheckError(
                f"{_who(worker)} allocates with {_words(pool)}, the site wants the memory pool {spec.rmm_pool}"
            )


def check_pools_kept(workload: str, workers: Sequence[ProcessFacts], now: Mapping[str, ProcessFacts]) -> None:
    """Every GPU worker allocates as it did at the start: what a workload changes would be measured by the next ones.

    Args:
        workers: their facts at the start, with ``address``.
        now: ``process_facts.gpu_memory`` by address.
    """
    for worker in workers:
        before, after = worker["memory_pool"], now[worker["address"]]["memory_pool"]
        if before != after:
            raise CheckError(
                f"{workload} changed how {_who(worker)} allocates: {_words(before)} before, {_words(after)} after it"
            )


def _who(worker: ProcessFacts) -> str:
    return "{} (pid {} on {})".format(worker["name"], worker["pid"], worker["host"])


def _words(pool: Mapping[str, Any]) -> str:
    return "{} of {} bytes, arrays by {}".format(" over ".join(pool["resources"]), pool["pool_bytes"], pool["arrays"])
