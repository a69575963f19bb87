"""The steps: each a function that yields what was expected, what was seen, and whether that is the same."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu.runs import Bench, Ended, workload
from gpubench.node.workloads import nvml

Seen = tuple[str, str, bool]
Step = Callable[[Bench], Iterator[Seen]]

MESSAGES = (workload("message", size=10_000_000), workload("message", size=100_000_000))
SUM = workload("transpose-sum", size=20_000, chunk=5_000)
TWO: dict[str, Any] = {"nodes": 2, "memory_limit": 20 * 2**30}
"""Two supervisors on this machine, a worker each, on the same GPU."""


def best(ended: Ended, name: str) -> str:
    """The shortest repetition."""
    found = ended.samples.get(name)
    return f"{min(found) * 1e3:.1f} ms" if found else "no sample"


def is_ok(ended: Ended) -> Seen:
    """The run and all of its workloads."""
    fine = ended.record["status"] == "ok" and all(one["status"] == "ok" for one in ended.record["workloads"])
    warnings = f"; {'; '.join(ended.record['warnings'])}" if ended.record["warnings"] else ""
    return "ok", f"{ended.outcome} in {ended.took_s:.0f} s{warnings}", fine


def fails(ended: Ended, words: str) -> Seen:
    """With these words in a reason."""
    return f"not ok: … {words} …", ended.outcome, not is_ok(ended)[2] and words in ended.outcome


def first_gpu() -> nvml.Device:
    """The GPU of all steps."""
    return nvml.devices()["gpu-0"]


def await_memory(least: int, timeout_s: float) -> float:
    """Seconds until less of the GPU's memory than this is used; infinity if it isn't."""
    began = time.monotonic()
    while time.monotonic() < began + timeout_s:
        if nvml.used(first_gpu())[0] < least:
            return time.monotonic() - began
        time.sleep(0.01)
    return float("inf")


def driver(bench: Bench) -> Iterator[Seen]:
    """Every function of NVML that gpubench calls answers."""
    with (bench.folder / "nvidia-smi.txt").open("w") as out:
        subprocess.run(["nvidia-smi", "-q"], stdout=out, stderr=subprocess.STDOUT, check=False)
    gpu, used = first_gpu(), nvml.used(first_gpu())
    yield "a model, a driver", f"{nvml.models()}, {nvml.driver()}", bool(nvml.models() and nvml.driver())
    yield "free memory", f"{used[0] / 1e6:.0f} MB used, {used[1]} % busy", used[0] < 1e9 and used[1] == 0
    yield "limits", nvml.limits(), "W" in nvml.limits()
    yield "compute mode default", nvml.compute_mode("0"), nvml.compute_mode("0") == "default"
    yield "joules, no throttling", f"{nvml.joules(gpu)}, {nvml.throttle_reasons(gpu)}", nvml.joules(gpu) is not None
    near, why = nvml.cpus_near("0")
    yield "CPUs near it, or why not", f"{len(near)} CPUs {why}", bool(near or why)


def one_worker(bench: Bench) -> Iterator[Seen]:
    """One worker, no pool: the module for GPU memory, cupy by RMM."""
    ended = bench.run("one", SUM, workload("copy"))
    yield is_ok(ended)
    for worker in ended.workers:
        module = [path.rpartition("/")[2] for path in worker["ucx"]["cuda_module"]]
        yield "libuct_cuda mapped", ", ".join(module) or "none", bool(module)
        pool = worker["memory_pool"]
        yield "arrays by rmm", str(pool), pool.get("arrays") == "rmm"
    yield "figures", f"transpose-sum {best(ended, 'transpose-sum')}, copy {best(ended, 'copy')}", bool(ended.samples)


def two_workers(bench: Bench) -> Iterator[Seen]:
    """Two workers that send each other GPU memory: cuda_ipc is there, and UCX says that it chose it."""
    links = [workload("link", test=test, size=1_000_000) for test in ("tag_bw", "send_recv")]
    ended = bench.run("two", *MESSAGES, SUM, *links, **TWO)
    yield is_ok(ended)
    transport = ended.provenance.get("transport", {})
    yield (
        "cuda_ipc among the lanes",
        ", ".join(transport.get("lanes", ())),
        "cuda_ipc/cuda" in transport.get("lanes", ()),
    )
    carriers = transport.get("carriers", [])
    yield "cuda_ipc chosen for large messages", ", ".join(carriers) or "nothing said", "cuda_ipc" in carriers
    names = ("message", "transpose-sum", "link")
    yield "figures", ", ".join(f"{name} {best(ended, name)}" for name in names), bool(ended.samples)


def without_ipc(bench: Bench) -> Iterator[Seen]:
    """Without cuda_ipc the run fails where the site needs it, and is slower by a factor where it doesn't."""
    yield fails(bench.run("needs-ipc", SUM, tls="tcp,cuda_copy", **TWO), "the site needs cuda_ipc on the same node")
    ended = bench.run("no-ipc", *MESSAGES, tls="tcp,cuda_copy", need_transport={}, **TWO)
    yield is_ok(ended)
    carriers = ended.provenance.get("transport", {}).get("carriers", [])
    yield "no cuda_ipc chosen", ", ".join(carriers) or "nothing said", "cuda_ipc" not in carriers
    yield "figures", f"message {best(ended, 'message')}", bool(ended.samples)


def protocols(bench: Bench) -> Iterator[Seen]:
    """What UCX printed of its choice: kept, and counted."""
    logs = [path.read_text(errors="replace") for path in (bench.folder / "two" / "ucx").glob("*.log")]
    tables = [line for log in logs for line in log.splitlines() if "_send" in line and " from " in line]
    operations = sorted({line.rsplit("|", 2)[1].strip() for line in tables})
    yield "tables of messages from cuda", "; ".join(operations) or "none", any("cuda" in one for one in operations)


def spilling(bench: Bench) -> Iterator[Seen]:
    """Over 80 % of the GPU dask-cuda spills: the workload ends; at half of it all is well."""
    for name, share in (("spills", 0.88), ("fits", 0.5)):
        side = int((share * bench.gigabytes * 1e9 / 8) ** 0.5) // 16 * 16
        ended = bench.run(name, workload("transpose-sum", reps=1, size=side, chunk=side // 16))
        yield fails(ended, "moved from its GPU to main memory") if name == "spills" else is_ok(ended)


def pools(bench: Bench) -> Iterator[Seen]:
    """With a pool arrays come from it, and the same work is faster than by the driver."""
    size = int(0.4 * bench.gigabytes) * 10**9
    ended = bench.run("pool", SUM, workload("copy"), rmm_pool=str(size))
    yield is_ok(ended)
    for worker in ended.workers:
        pool = worker["memory_pool"]
        yield f"a pool of {size} bytes", str(pool), (pool["arrays"], pool["pool_bytes"]) == ("rmm", size // 256 * 256)
    yield "figures", f"transpose-sum {best(ended, 'transpose-sum')}, copy {best(ended, 'copy')}", bool(ended.samples)


def other_pools(bench: Bench) -> Iterator[Seen]:
    """dask-cuda's own benchmark sets a pool of its own in our workers: contrib's workload gives ours back."""
    upstream = bench.upstream("-o transpose_sum -s 20000 -c 5000")
    after = workload("transpose-sum", size=20_000, chunk=4_000)
    ended = bench.run("upstream", SUM, upstream, after, rmm_pool=str(int(0.3 * bench.gigabytes) * 10**9))
    yield is_ok(ended)
    names = ("transpose-sum", "upstream.py:Upstream")
    yield "figures", ", ".join(f"{name} {best(ended, name)}" for name in names), True


def memory_back(bench: Bench) -> Iterator[Seen]:
    """The memory of an ended run is back before the next one starts, or it waits, and says nothing."""
    size = str(int(0.7 * bench.gigabytes) * 10**9)
    waits = []
    for turn in range(3):
        ended = bench.run(f"back-{turn}", workload("copy", reps=1), rmm_pool=size)
        waits.append(await_memory(10**9, 20.0))
        yield is_ok(ended)
    yield "back at once", ", ".join(f"{wait * 1e3:.0f} ms" for wait in waits), max(waits) < 5


LOAD = """
import cupy
a = cupy.ones((8192, 8192), dtype=cupy.float32)
while True:
    a @ a
    cupy.cuda.Device().synchronize()
"""


def foreign_load(bench: Bench) -> Iterator[Seen]:
    """Somebody else's work on the GPU is a warning, and moves the figures."""
    alone = bench.run("alone", SUM)
    other = subprocess.Popen([bench.python, "-c", LOAD], env={**os.environ, "CUDA_VISIBLE_DEVICES": "0"})
    try:
        time.sleep(8)
        beside = bench.run("beside", SUM)
    finally:
        other.kill()
        other.wait()
    lines = [line for line in beside.record["warnings"] if "somebody else used" in line]
    yield "a warning of use", "; ".join(lines) or "none", bool(lines)
    yield "figures", f"{best(alone, 'transpose-sum')} alone, {best(beside, 'transpose-sum')} beside", True


def visible(bench: Bench) -> Iterator[Seen]:
    """What the job was given is used, and nothing else."""
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    uuid = re.search(r"GPU-[0-9a-f-]{36}", listed)
    for value in ("0", uuid[0] if uuid else "0"):
        ended = bench.run(f"visible-{value[:8]}", workload("copy", reps=1), variables={"CUDA_VISIBLE_DEVICES": value})
        seen = [worker["gpu"]["device"] for worker in ended.workers]
        yield f"worker on {value[:12]}", f"{ended.outcome} {seen}", is_ok(ended)[2] and seen == [value]
    for value in ("", "NoDevFiles"):
        ended = bench.run(f"visible-{value or 'empty'}", SUM, variables={"CUDA_VISIBLE_DEVICES": value})
        yield fails(ended, "0 of 1 workers can have a GPU of their own")


def kernel_caches(bench: Bench) -> Iterator[Seen]:
    """The first run of an image compiles, the next ones find what it compiled."""
    found = []
    for turn in ("cold", "warm"):
        image = f"cache of {bench.folder.name}"
        ended = bench.run(f"cache-{turn}", workload("transpose-sum", reps=2, size=4_000, chunk=1_000), image=image)
        warmups = [Path(path) for path in (bench.folder / f"cache-{turn}" / "runs").glob("*/samples.jsonl")]
        text = warmups[0].read_text().splitlines()[0] if warmups else "{}"
        seconds = float((re.search(r'"wall_s": ?([0-9.e-]+)', text) or ["", "nan"])[1])
        found.append(seconds)
        yield is_ok(ended)
    files = sum(1 for path in (bench.folder / "scratch").glob("gpubench-kernels-*/*/**/*") if path.is_file())
    yield "kernels are kept", f"{files} files; first repetition {found[0]:.3f} s cold, {found[1]:.3f} s warm", files > 0


HALVES: dict[str, tuple[Step, ...]] = {
    "first": (driver, one_worker, two_workers, without_ipc, protocols, spilling, pools),
    "second": (other_pools, memory_back, foreign_load, visible, kernel_caches),
}
