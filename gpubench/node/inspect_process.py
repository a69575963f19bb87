"""What a process of a standing cluster answers to a look at it: what it has loaded, and where a worker may run."""

import asyncio
import contextlib
import os
import re
from pathlib import Path
from typing import Any, Dict, List

from gpubench.node import gpu_worker, image
from gpubench.node.spec.memory import kernel_text
from gpubench.node.workloads import ucx
from gpubench.node.workloads.nvml import VISIBLE

CPUS = Path("/sys/devices/system/cpu")
NUMA = Path("/sys/devices/system/node")


async def of_scheduler(scheduler: Any) -> Dict[str, Any]:
    """What it has loaded, and its ``workers`` by address: ``scheduler_info`` leaves out all but five."""
    workers = {
        str(worker.address): {
            "name": str(worker.name),
            "threads": int(worker.nthreads),
            "memory_limit": int(worker.memory_limit or 0),
        }
        for worker in scheduler.workers.values()
    }
    return {**_process("scheduler", scheduler), "workers": workers}


async def of_worker(worker: Any, answer_s: float) -> Dict[str, Any]:
    """What it has loaded, and where it may run; that only if ``answer_s`` isn't 0.

    CPUs are asked for in one of its threads that run tasks: a library may have bound only these. If all are busy for
    ``answer_s`` seconds, ``error`` says so.
    """
    facts = {**_process("worker", worker), "gpus": os.environ.get(VISIBLE, "")}
    if answer_s:
        place = asyncio.get_running_loop().run_in_executor(worker.executors["default"], placed)
        try:
            facts.update(await asyncio.wait_for(place, answer_s))
        except asyncio.TimeoutError:  # not a TimeoutError before Python 3.11
            facts["error"] = f"no answer within {answer_s:g} s"
        except OSError as error:
            facts["error"] = str(error)[:200]
    return facts


def _process(role: str, process: Any) -> Dict[str, Any]:
    return {
        "role": role,
        "address": str(process.address),
        "host": os.uname().nodename,
        "ucx": ucx.loaded()["version"],
        "packages": image.packages_id(),
    }


def placed() -> Dict[str, Any]:
    """Where this thread of a worker may run, after it has worked; CPUs by their numbers.

    ``allowed`` of the thread; ``cpus`` that are online here; ``cores`` by CPU (those that share one are hyper-threads);
    ``numa`` by node; where ``CUDA_VISIBLE_DEVICES`` names a GPU, ``gpu`` as in a run (see ``spec/near_gpu.py``).
    """
    with contextlib.suppress(ImportError):  # OpenBLAS and OpenMP bind when they first work
        import numpy as np

        np.ones((64, 64)) @ np.ones((64, 64))
    online = numbers(kernel_text(CPUS / "online")) or sorted(os.sched_getaffinity(0))
    return {
        "allowed": sorted(os.sched_getaffinity(0)),
        "cpus": online,
        "cores": {str(cpu): _core(cpu) for cpu in online},
        "numa": {path.name[4:]: numbers(kernel_text(path / "cpulist")) for path in sorted(NUMA.glob("node[0-9]*"))},
        **({"gpu": gpu_worker.place()} if os.environ.get(VISIBLE) else {}),
    }


def numbers(text: str) -> List[int]:
    """``0-2,8`` → 0 1 2 8."""
    cpus: List[int] = []
    for low, high in re.findall(r"(\d+)(?:-(\d+))?", text):
        cpus.extend(range(int(low), int(high or low) + 1))
    return cpus


def _core(cpu: int) -> int:
    """The first CPU of its core; itself where the kernel doesn't say."""
    return (numbers(kernel_text(CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list")) or [cpu])[0]
