"""Find GPUs, and choose those of a run. NVML is asked, because a CUDA library can be imported without a GPU."""

import contextlib
import importlib.util
import os
import time
from pathlib import Path
from typing import Dict, List, Mapping

from gpubench.node.workloads import nvml
from gpubench.node.workloads.clock import poll_until
from gpubench.node.workloads.nvml import VISIBLE

DEVICES = ("auto", "cpu", "gpu")


def resolve(device: str) -> str:
    """``auto`` → ``gpu`` where a GPU answers and this Python has cupy, else ``cpu``."""
    if device != "auto":
        return device
    return "gpu" if nvml.count() and importlib.util.find_spec("cupy") else "cpu"


def chosen(workers: int, inherited: Mapping[str, str]) -> Dict[str, str]:
    """The variables that show a node's workers ``workers`` of its GPUs, or fewer where there are fewer; MPS's own too.

    They are the first ones of ``inherited``'s own variable, where the scheduler gave the job some of the node's GPUs,
    else the first ones of the node. ``dask cuda worker`` starts a worker on every GPU that it sees. CUDA counts GPUs
    as NVML does, by their place on the bus: by default it begins with the fastest.
    Source: CUDA programming guide, environment variables.
    """
    kept = {MPS_VARIABLE: inherited[MPS_VARIABLE]} if MPS_VARIABLE in inherited else {}
    if VISIBLE not in inherited and not nvml.count():
        return kept
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", VISIBLE: ",".join(_given(inherited)[:workers]), **kept}


def _given(environ: Mapping[str, str]) -> List[str]:
    """The GPUs that ``environ`` names; all of the node where it says nothing."""
    return nvml.named(environ[VISIBLE]) if VISIBLE in environ else [str(index) for index in range(nvml.count())]


def lacking(workers: int, environ: Mapping[str, str]) -> str:
    """Why not each of a node's workers can have a GPU of its own, and others of the run beside it; empty if so."""
    given, known = _given(environ), nvml.count()
    if len(given) < workers:
        shown = "isn't set" if VISIBLE not in environ else f"= {environ[VISIBLE] or 'none'}"
        return (
            f"{len(given)} of {workers} workers can have a GPU of their own ({VISIBLE} {shown}, NVML knows {known}); "
            "a part of a GPU (MIG) counts if that variable names it"
        )
    absent = [device for device in given[:workers] if not nvml.knows(device)]
    if absent:
        return f"{VISIBLE} names GPU {', '.join(absent)}, which NVML doesn't know on this node (it knows {known})"
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
