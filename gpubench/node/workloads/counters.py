"""What a repetition costs beside time: processor seconds of the run's processes, joules of its hosts, throttled GPUs.

All readings are taken outside of a repetition's clock. The client reads its
own host without a message: the kernel gives the processor time of any process by its number (clock_getcpuclockid(3)),
in nanoseconds. One worker of each other host reads there, so that a run on one host costs no round trip, and a run on
several hosts two per repetition. What can't be read is absent.
"""

import contextlib
import ctypes
import dataclasses
import functools
import os
import re
import time
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from gpubench.node.workloads import nvml
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE, marked

POWERCAP = Path("/sys/class/powercap")
_ZONE = re.compile(r"(intel|amd)-rapl:\d+")
"""A zone of the first level. Those of ``intel-rapl-mmio`` count the same packages a second time."""

Reading = Dict[str, Any]
"""Of a host: ``cpu_s``, None where a process can't be read; ``joules``, by counter, with where it begins anew (0:
never); ``throttle``, None without GPUs."""


def _packages(root: Path) -> Dict[str, Path]:
    """Counters of whole processors by name, which is ``package-0`` on Intel's and AMD's alike.

    Source: Documentation/power/powercap/powercap.rst of Linux.
    """
    zones = {}
    for zone in sorted(root.glob("*-rapl:*")):
        with contextlib.suppress(OSError):
            name = (zone / "name").read_text(encoding="ascii").strip()
            if _ZONE.fullmatch(zone.name) and name.startswith("package"):
                (zone / "energy_uj").read_text(encoding="ascii")  # most kernels let only root read it
                zones[name] = zone
    return zones


class HostCounters:
    def __init__(self, pids: Iterable[int], powercap: Path = POWERCAP) -> None:
        self._clocks: Optional[List[int]] = []
        for pid in pids:
            clock = ctypes.c_int(0)
            if ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock)) != 0:
                self._clocks = None
                break
            self._clocks.append(clock.value)
        self._packages = _packages(powercap)
        self._gpus = nvml.own()

    def read(self) -> Reading:
        joules: Dict[str, Tuple[float, float]] = {}
        for name, zone in self._packages.items():
            with contextlib.suppress(OSError, ValueError):
                figures = [float((zone / file).read_text()) / 1e6 for file in ("energy_uj", "max_energy_range_uj")]
                joules[name] = (figures[0], figures[1])
        for name, gpu in self._gpus.items():
            energy = nvml.joules(gpu)
            if energy is not None:
                joules[name] = (energy, 0.0)
        throttle = _all_of(map(nvml.throttle_reasons, self._gpus.values()))
        return {"cpu_s": self._cpu_s(), "joules": joules, "throttle": throttle}

    def _cpu_s(self) -> Optional[float]:
        try:
            return sum(map(time.clock_gettime, self._clocks)) if self._clocks else None
        except OSError:  # a process has ended, which the run notices by itself
            return None


@functools.lru_cache(maxsize=1)
def _here() -> HostCounters:
    """Those of this process's host, found once: the processes of a run stay the same, or the run fails."""
    mark = os.environ.get(CLUSTER_VARIABLE, "").rpartition(":")[0]
    pids = [os.getpid(), *marked(CLUSTER_VARIABLE, lambda value: value.rpartition(":")[0] == mark)] if mark else []
    return HostCounters(pids)


def read_here() -> Reading:
    return _here().read()


@dataclasses.dataclass(frozen=True)
class Cost:
    """Of one repetition; None: couldn't be read.

    ``cpu_s`` are processor seconds of scheduler, workers and client. ``energy_j`` are joules of the counters in
    ``energy_of`` (``HOST/COUNTER``): whole processors and the run's GPUs, whoever used them. ``throttle`` are the
    reasons for which a GPU of the run ran slower at the end, NVML's bits of all of them together.
    """

    cpu_s: Optional[float] = None
    energy_j: Optional[float] = None
    throttle: Optional[int] = None
    energy_of: Tuple[str, ...] = ()


class Counters:
    """The counters of all hosts of a run.

    Args:
        client: a ``distributed.Client``.
        host: this process's.
        others: address of a worker on every other host, by host.
    """

    def __init__(self, client: Any, host: str, others: Mapping[str, str]) -> None:
        self._client = client
        self._host = host
        self._others = dict(others)

    def before(self) -> Dict[str, Reading]:
        """Readings by host, this one's last: what follows is the clock."""
        far = self._far()
        return {**far, self._host: read_here()}

    def since(self, before: Mapping[str, Reading]) -> Cost:
        """What was used since then, this host read first."""
        here = read_here()
        return cost(before, {**self._far(), self._host: here})

    def _far(self) -> Dict[str, Reading]:
        if not self._others:
            return {}
        readings = self._client.run(read_here, workers=list(self._others.values()))
        return {host: readings[address] for host, address in self._others.items()}


def of_run(client: Any, host: str, processes: Iterable[Mapping[str, Any]]) -> Optional[Counters]:
    """The counters of a run; None where its scheduler is on a host that nobody can read.

    Args:
        host: this process's.
        processes: of the run, as in its provenance: ``role``, ``host``, and ``address`` of workers.
    """
    others: Dict[str, str] = {}
    for process in processes:
        if process["role"] == "worker" and process["host"] != host:
            others.setdefault(process["host"], process["address"])
    known = {host, *others}
    return Counters(client, host, others) if all(process["host"] in known for process in processes) else None


def cost(before: Mapping[str, Reading], after: Mapping[str, Reading]) -> Cost:
    """The difference of two readings of the same hosts. A counter that only one of them has makes energy unknown."""
    pairs = [(before[host], after[host]) for host in sorted(after)]
    seconds = [(first["cpu_s"], second["cpu_s"]) for first, second in pairs]
    cpu_s = None if any(None in pair for pair in seconds) else sum(end - start for start, end in seconds)
    of = [f"{host}/{name}" for host in sorted(after) for name in sorted(after[host]["joules"])]
    same = bool(of) and all(first["joules"].keys() == second["joules"].keys() for first, second in pairs)
    throttle = _all_of(second["throttle"] for _, second in pairs)
    if not same:
        return Cost(cpu_s, None, throttle)
    ends = [(first["joules"][name][0], *second["joules"][name]) for first, second in pairs for name in second["joules"]]
    energy_j = sum(end - start + (anew if end < start else 0.0) for start, end, anew in ends)
    return Cost(cpu_s, energy_j, throttle, tuple(of))


def _all_of(masks: Iterable[Optional[int]]) -> Optional[int]:
    known = [mask for mask in masks if mask is not None]
    return functools.reduce(int.__or__, known) if known else None
