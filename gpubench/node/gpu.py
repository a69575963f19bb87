"""Find GPUs and start workers on them. NVML is asked, because a CUDA library can be imported without a GPU."""

import contextlib
import ctypes
import importlib.util
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping

from gpubench.node.admission import PRELOAD
from gpubench.node.workloads import nvml
from gpubench.node.workloads.clock import poll_until

DEVICES = ("auto", "cpu", "gpu")
VISIBLE = "CUDA_VISIBLE_DEVICES"
ALLOCATING = "gpubench.node.preload_rmm"
CPUS_NEAR_GPU = "gpubench.node.preload_cpu_binding"


def count() -> int:
    """How many GPUs the driver knows, 0 without a driver.

    Source: NVML API reference, nvmlInit_v2 and nvmlDeviceGetCount_v2; 0 is NVML_SUCCESS.
    """
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    if nvml.nvmlInit_v2() != 0:
        return 0
    number = ctypes.c_uint(0)
    failed = nvml.nvmlDeviceGetCount_v2(ctypes.byref(number))
    nvml.nvmlShutdown()
    return 0 if failed else number.value


def resolve(device: str) -> str:
    """``auto`` → ``gpu`` where a GPU answers and this Python has cupy, else ``cpu``."""
    if device != "auto":
        return device
    return "gpu" if count() and importlib.util.find_spec("cupy") else "cpu"


def chosen(workers: int, inherited: Mapping[str, str]) -> Dict[str, str]:
    """The variables that show a node's workers ``workers`` of its GPUs, or fewer where there are fewer; MPS's own too.

    They are the first ones of ``inherited``'s own variable, where the scheduler gave the job some of the node's GPUs,
    else the first ones of the node. ``dask cuda worker`` starts a worker on every GPU that it sees. CUDA counts GPUs
    as NVML does, by their place on the bus: by default it begins with the fastest.
    Source: CUDA programming guide, environment variables.
    """
    kept = {MPS_VARIABLE: inherited[MPS_VARIABLE]} if MPS_VARIABLE in inherited else {}
    if VISIBLE not in inherited and not count():
        return kept
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", VISIBLE: ",".join(_given(inherited)[:workers]), **kept}


def _given(environ: Mapping[str, str]) -> List[str]:
    """The GPUs that ``environ`` names; all of the node where it says nothing."""
    return nvml.named(environ[VISIBLE]) if VISIBLE in environ else [str(index) for index in range(count())]


def lacking(workers: int, environ: Mapping[str, str]) -> str:
    """Why not each of a node's workers can have a GPU of its own, and others of the run beside it; empty if so."""
    given = _given(environ)
    if len(given) < workers:
        shown = "isn't set" if VISIBLE not in environ else f"= {environ[VISIBLE] or 'none'}"
        return (
            f"{len(given)} of {workers} workers can have a GPU of their own ({VISIBLE} {shown}, NVML knows {count()}); "
            "a part of a GPU (MIG) counts if that variable names it"
        )
    absent = [device for device in given[:workers] if not nvml.knows(device)]
    if absent:
        return f"{VISIBLE} names GPU {', '.join(absent)}, which NVML doesn't know on this node (it knows {count()})"
    for device in given[:workers]:
        mode = nvml.compute_mode(device)
        if mode == nvml.PROHIBITED or (mode == nvml.EXCLUSIVE_PROCESS and not MPS.exists()):
            return (
                f"GPU {device} is in compute mode {mode}: client and scheduler can't use it beside its worker; "
                "nvidia-smi --compute-mode=0, or MPS (under LSF alloc_flags gpumps)"
            )
    return ""


USED_BYTES, BUSY_PERCENT = 10**9, 5
"""More of a GPU's memory or time than this, before a run, is somebody's work."""
FREE_S, FREE_POLL_S = 5.0, 0.1
"""The driver gives memory back later than the kernel ends the process that had it."""


def in_use(shown: str) -> List[str]:
    """What of these GPUs somebody uses, in words, after waiting a moment for it to end: ``GPU 0: 12.3 GB, 40 % busy``.

    ``shown`` is a value of ``CUDA_VISIBLE_DEVICES``.
    """
    devices = {}
    for word in nvml.named(shown):
        with contextlib.suppress(nvml.NvmlError):
            devices[word] = nvml.device_of(word)
    users: Dict[str, str] = {}

    def none_left() -> bool:
        users.clear()
        for word, device in devices.items():
            size, busy = nvml.used(device)
            if size > USED_BYTES or (busy or 0) > BUSY_PERCENT:
                users[word] = "GPU {}: {:.1f} GB{}".format(word, size / 1e9, "" if busy is None else f", {busy} % busy")
        return not users

    poll_until(none_left, time.monotonic() + FREE_S, FREE_POLL_S)
    return [user for _, user in sorted(users.items())]


MPS_VARIABLE = "CUDA_MPS_PIPE_DIRECTORY"
MPS = Path(os.environ.get(MPS_VARIABLE, "/tmp/nvidia-mps"))  # noqa: S108 - where MPS has it
"""Of CUDA's multi-process service, whose one process has the GPU."""


def worker_processes(device: str, workers: int) -> int:
    """How many commands start the ``workers`` of a node: ``dask cuda worker`` starts one per GPU that it sees."""
    return 1 if device == "gpu" else workers


def worker_options(device: str, rmm_pool: str) -> List[str]:
    """Words for ``dask cuda worker`` beside those that it shares with ``dask worker``.

    ``rmm_pool`` in bytes makes a pool of that size; under ``none`` and ``default`` no option is given: without it,
    ``dask cuda worker`` makes no pool. Its nannies start workers as new processes, which close themselves to others,
    are bound to the CPUs near their GPUs as a whole, and all allocate arrays in the same way.
    Source: dask-cuda's API reference, ``dask cuda worker --rmm-pool-size``.
    """
    if device != "gpu":
        return []
    pool = ["--rmm-pool-size", rmm_pool] if rmm_pool.isdigit() else []
    preloads = (PRELOAD, CPUS_NEAR_GPU, ALLOCATING)
    return [*pool, *(word for module in preloads for word in ("--preload", module))]


DEATH_TIMEOUT = "--death-timeout"


def cuda_worker() -> Callable[[List[str]], None]:
    """``dask cuda worker``: one process per GPU that ``CUDA_VISIBLE_DEVICES`` names, all of them without it."""
    from dask_cuda import cuda_worker

    command = _command()
    if not count():
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


def on_bus() -> str:
    """Where NVML says that the GPU of such a worker is; empty where it doesn't."""
    place = ""
    with contextlib.suppress(nvml.NvmlError):
        place = nvml.on_bus(os.environ.get(VISIBLE, "0").split(",")[0])
    return place


def given_environment() -> Dict[str, str]:
    """Variables with which the parent of such a worker was started.

    The worker itself inherits what the binding sets in its parent, by the GPUs of the node.
    """
    text = Path(f"/proc/{os.getppid()}/environ").read_bytes().decode("utf-8", "surrogateescape")
    return dict(item.split("=", 1) for item in text.split("\0") if "=" in item)
