"""``node.pyz look``: the processes of a standing cluster, and the CPUs on which its workers may run."""

import asyncio
import contextlib
import os
import re
import signal
from pathlib import Path
from types import FrameType
from typing import Any, Dict, List, Optional

from gpubench.node import external_cluster, gpu, process
from gpubench.node.probe import describe_scheduler, describe_worker
from gpubench.node.spec.inspect_record import INSPECT_FILE, INSPECT_RECORD, InspectRecord, InspectSpec
from gpubench.node.stop import StoppedError
from gpubench.node.writer.atomic import write_atomic

CPUS = Path("/sys/devices/system/cpu")
NUMA = Path("/sys/devices/system/node")


def look(spec: InspectSpec, directory: Path, parent: Optional[int]) -> int:
    """Inspect the cluster, and write the record into ``directory``; returns the process's exit code."""
    _end_in_order(parent)
    from distributed import Client

    record = InspectRecord(schema=INSPECT_RECORD)
    try:
        client = Client(spec.address, timeout=spec.connect_s, name="gpubench-look", set_as_default=True)
    except (OSError, ValueError, TypeError, ImportError, RuntimeError) as error:  # no answer, no keys, no binding ...
        record.unreachable = str(error).strip().split("\n")[0][:200] or type(error).__name__
    else:
        with contextlib.closing(client):
            _look(client, spec, record)
    write_atomic(directory / INSPECT_FILE, record.dump().encode("utf-8"))
    return 0


def _end_in_order(parent: Optional[int]) -> None:
    """Turn signals and the front end's death into an exception, so that our code is removed from the cluster."""

    def stop(number: int, _frame: Optional[FrameType]) -> None:
        for other in external_cluster.ENDING:
            signal.signal(other, signal.SIG_IGN)
        raise StoppedError(f"interrupted by {signal.Signals(number).name}")

    for number in external_cluster.ENDING:
        signal.signal(number, stop)
    process.die_with_parent(parent, signal.SIGTERM)


def _look(client: Any, spec: InspectSpec, record: InspectRecord) -> None:
    said = client.get_versions(check=False)
    processes = {"client": said["client"], "scheduler": said["scheduler"], **said["workers"]}
    record.versions = {name: external_cluster.versions(one) for name, one in processes.items()}
    known = [[found.get(name) for name in external_cluster.MUST_AGREE] for found in record.versions.values()]
    if any(one != known[0] for one in known):
        return  # what is sent couldn't be read there
    with external_cluster.code_installed(client, Path(process.archive())):
        record.workers = client.run_on_scheduler(external_cluster.workers_of)
        record.processes = [client.run_on_scheduler(describe_scheduler)]
        record.processes += [dict(one, address=at) for at, one in sorted(client.run(describe_worker).items())]
        visible = client.run(visible_gpus)
        record.workers = [dict(one, gpus=visible.get(one["address"], "")) for one in record.workers]
        if spec.places:
            record.places = _places(client, [str(one["address"]) for one in record.workers], spec.answer_s)


def visible_gpus() -> str:
    """``CUDA_VISIBLE_DEVICES`` of this process; empty without."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")


def _places(client: Any, workers: List[str], answer_s: float) -> List[Dict[str, Any]]:
    """CPU affinity, asked by a task on each worker: a library may have bound only the thread that runs tasks."""
    from distributed import wait

    futures = {at: client.submit(placed, workers=[at], allow_other_workers=False, pure=False) for at in workers}
    with contextlib.suppress(asyncio.TimeoutError):  # not a TimeoutError before Python 3.11
        wait(list(futures.values()), timeout=answer_s)
    found = []
    for at, future in futures.items():
        facts: Dict[str, Any] = {"error": f"no answer within {answer_s:g} s"}
        if future.done():
            facts = future.result() if future.status == "finished" else {"error": str(future.exception())[:200]}
        found.append({"address": at, **facts})
    client.cancel([future for future in futures.values() if not future.done()])
    return found


def placed() -> Dict[str, Any]:
    """Where this thread of a worker may run, after it has worked; CPUs by their numbers.

    ``allowed`` of the thread, ``process`` of the process's first; ``cpus`` that are online here; ``cores`` by CPU
    (those that share one are hyper-threads); ``numa`` by node; ``gpus`` as ``CUDA_VISIBLE_DEVICES`` says, and where it
    names one, ``gpu`` as in a run (see ``spec/near_gpu.py``).
    """
    with contextlib.suppress(ImportError):  # OpenBLAS and OpenMP bind when they first work
        import numpy as np

        np.ones((64, 64)) @ np.ones((64, 64))
    online = numbers(_text(CPUS / "online")) or sorted(os.sched_getaffinity(0))
    return {
        "host": os.uname().nodename,
        "pid": os.getpid(),
        "allowed": sorted(os.sched_getaffinity(0)),
        "process": sorted(os.sched_getaffinity(os.getpid())),
        "cpus": online,
        "cores": {str(cpu): _core(cpu) for cpu in online},
        "numa": {path.name[4:]: numbers(_text(path / "cpulist")) for path in sorted(NUMA.glob("node[0-9]*"))},
        "gpus": visible_gpus(),
        **({"gpu": gpu.place()} if visible_gpus() else {}),
    }


def numbers(text: str) -> List[int]:
    """``0-2,8`` → 0 1 2 8."""
    found: List[int] = []
    for low, high in re.findall(r"(\d+)(?:-(\d+))?", text):
        found.extend(range(int(low), int(high or low) + 1))
    return found


def _core(cpu: int) -> int:
    """The first CPU of its core; itself where the kernel doesn't say."""
    return (numbers(_text(CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list")) or [cpu])[0]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
