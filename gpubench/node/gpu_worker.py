"""dask-cuda's worker: how it is started on a node's GPUs, and what it says of its own."""

import os
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

from gpubench.node.workloads import nvml
from gpubench.node.workloads.nvml import VISIBLE

PRELOAD = "gpubench.node.preload_gpu_worker"


def worker_options(device: str, rmm_pool: str) -> List[str]:
    """Words for ``dask cuda worker`` beside those that it shares with ``dask worker``.

    ``rmm_pool`` in bytes makes a pool of that size; under ``none`` and ``default`` no option is given: without it,
    ``dask cuda worker`` makes no pool. Its nannies start workers as new processes, which need the preload.
    Source: dask-cuda's API reference, ``dask cuda worker --rmm-pool-size``.
    """
    if device != "gpu":
        return []
    pool = ["--rmm-pool-size", rmm_pool] if rmm_pool.isdigit() else []
    return [*pool, "--preload", PRELOAD]


DEATH_TIMEOUT = "--death-timeout"


def cuda_worker() -> Callable[[List[str]], None]:
    """``dask cuda worker``: one process per GPU that ``CUDA_VISIBLE_DEVICES`` names, all of them without it."""
    from dask_cuda import cuda_worker

    command = _command()
    if not nvml.count():
        raise SystemExit("no GPU answers to NVML here, and GPU workers need one each")
    bind_to_own_gpus(cuda_worker)
    options = {option for parameter in command.params for option in parameter.opts}

    def become(arguments: List[str]) -> None:
        # 22.12 and 23.02 have it not, and take its words for those of a preload. Our supervisor ends such workers.
        if DEATH_TIMEOUT in arguments and DEATH_TIMEOUT not in options:
            place = arguments.index(DEATH_TIMEOUT)
            arguments = [*arguments[:place], *arguments[place + 2 :]]
        command.main(args=arguments, prog_name="dask cuda worker")

    return become


def _command() -> Any:
    from dask_cuda import cli

    if hasattr(cli, "worker"):
        return cli.worker
    from dask_cuda.cli.dask_cuda_worker import main  # until 22.12

    return main


def bind_to_own_gpus(cuda_worker: Any) -> None:
    """Let dask-cuda's module ``cuda_worker`` give every worker the CPUs, and the memory limit, of its own GPU.

    dask-cuda gives worker i of n those of GPU 2·i mod n, in all versions from 21.08 to 26.10: it asks
    ``nvml_device_index(i, cuda_visible_devices(i))`` (cuda_worker.py:197,220@v25.08.00), and takes element i of a list
    that ``cuda_visible_devices(i)`` has already turned so that the worker's own GPU is its first
    (utils.py:543@v22.12.00). ``LocalCUDACluster`` asks for the first. What this leads to is checked in every run.

    Where the step has none of those CPUs, dask-cuda 22.12 and 23.12 end the worker (plugins.py:14@v23.12.00, without
    ``try``); newer ones leave it on all of the step's, and so do these now.
    """
    index = getattr(cuda_worker, "nvml_device_index", None)
    if index is not None:
        cuda_worker.nvml_device_index = lambda _number, visible: index(0, visible)
    step = os.sched_getaffinity(0)

    def within_step(cpus: Callable[[Any], List[int]]) -> Callable[[Any], List[int]]:
        return lambda device: sorted(step.intersection(cpus(device)) or step)

    asking: List[Any] = [cuda_worker, sys.modules.get(f"{cuda_worker.__package__}.worker_common")]  # that from 25.08 on
    for module in asking:
        if hasattr(module, "get_cpu_affinity"):
            module.get_cpu_affinity = within_step(module.get_cpu_affinity)


def place() -> Dict[str, Any]:
    """Of a worker of ``dask cuda worker``: its GPU, the CPUs near it, and those of its step; see ``near_gpu``.

    Its parent, who isn't bound, may use those of the step.
    """
    device = os.environ.get(VISIBLE, "0").split(",")[0]
    near, unknown = nvml.cpus_near(device)
    return {"device": device, "near": near, "unknown": unknown, "step": sorted(os.sched_getaffinity(os.getppid()))}


def given_environment() -> Dict[str, str]:
    """Variables with which the parent of such a worker was started.

    The worker itself inherits what the binding sets in its parent, by the GPUs of the node.
    """
    text = Path(f"/proc/{os.getppid()}/environ").read_bytes().decode("utf-8", "surrogateescape")
    return dict(item.split("=", 1) for item in text.split("\0") if "=" in item)
