"""Whether a GPU worker runs on the CPUs near its own GPU, as far as its step of the job has them. Pure.

A worker says of itself (``place`` in ``node/gpu_worker.py``): ``device``, the first word of its
``CUDA_VISIBLE_DEVICES``; ``near``, the CPUs that NVML calls near that GPU; ``unknown``, why NVML doesn't say them, else
empty; ``step``, the CPUs that its parent may use. Its own CPUs are its ``affinity``.
"""

from typing import Any, Dict, Iterable, List, Mapping, Sequence, Set, Tuple

Place = Mapping[str, Any]


def share(place: Place) -> str:
    """Of the CPUs near the GPU the step has ``all``, ``some`` or ``none``; ``unknown`` where NVML doesn't say them."""
    near, common = set(place["near"]), expected(place)
    if place["unknown"]:
        return "unknown"
    return "all" if common == near else "some" if common else "none"


def expected(place: Place) -> Set[int]:
    """The CPUs near the GPU that the step has."""
    return set(place["near"]) & set(place["step"])


def misplaced(place: Place, affinity: Iterable[int]) -> str:
    """Why a worker is on other CPUs than those near its GPU that its step has; empty where it is on exactly those.

    Empty, too, where there are none of them, or NVML doesn't say them: then nothing can be expected.
    """
    wanted = expected(place)
    if place["unknown"] or not wanted or wanted == set(affinity):
        return ""
    return "has GPU {}, and is bound to CPUs {} instead of {}".format(
        place["device"], cpu_list(affinity), cpu_list(wanted)
    )


def warning(workers: Sequence[Mapping[str, Any]]) -> List[str]:
    """One line where the workers' steps lack CPUs near their GPUs, or NVML doesn't say them; none where all is well.

    ``workers`` are the facts of the processes: ``host`` and, as ``gpu``, the place.
    """
    devices_by_fault: Dict[Tuple[str, str], List[str]] = {}
    for worker in workers:
        place = worker["gpu"]
        has = share(place)
        if has == "unknown":
            why = "NVML says no CPUs ({})".format(place["unknown"])
        else:
            count = "none" if has == "none" else len(expected(place))
            why = "{} of the {} CPUs {}".format(count, len(place["near"]), cpu_list(place["near"]))
        if has != "all":
            devices_by_fault.setdefault((str(worker["host"]), why), []).append(str(place["device"]))
    hosts: Dict[str, List[str]] = {}
    for (host, why), devices in sorted(devices_by_fault.items()):
        hosts.setdefault("{} near GPU {}".format(why, ",".join(devices)), []).append(host)
    parts = [f"{what} on {_named(where)}" for what, where in hosts.items()]
    return ["GPU workers may not use all CPUs near their GPUs: " + "; ".join(parts)] if parts else []


def _named(hosts: Sequence[str]) -> str:
    return ", ".join(hosts[:2]) + (f" and {len(hosts) - 2} more" if len(hosts) > 2 else "")


def cpu_list(cpus: Iterable[int]) -> str:
    """``0 1 2 8`` → ``0-2,8``."""
    runs: List[List[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1][1:] = [cpu]
        else:
            runs.append([cpu])
    return ",".join("-".join(map(str, run)) for run in runs)
