"""Who polls while it waits: Dask's ways to UCX ask again and again for the next message, and a Dask connection always
waits for one. So scheduler, workers and client take a core each, also when they have nothing to do."""

from typing import Any, Dict, Iterable, List, Mapping, Set

ASLEEP = {"UCXPY_PROGRESS_MODE": "thread", "UCXPY_ENABLE_PYTHON_FUTURE": "1"}
"""With these, ucxx wakes a process that waits instead of letting it poll; other bindings don't know them."""
MENDED_BY = 'layout.waiting = "event" lets them sleep, if every binding can'


def polls(protocol: str, environment: Mapping[str, str]) -> bool:
    return protocol == "ucx" and any(environment.get(name) != value for name, value in ASLEEP.items())


def crowded(polling: int, cores: int, where: str) -> str:
    """A line for people where more processes poll than there are cores, else empty."""
    if polling <= cores:
        return ""
    there = f"{cores} core{'' if cores == 1 else 's'}"
    return f"oversubscribed: {polling} processes poll while they wait, on {there}{where}; {MENDED_BY}"


def crowded_hosts(protocol: str, processes: Iterable[Mapping[str, Any]]) -> List[str]:
    """``crowded`` of every host, from what the processes of a run say of themselves."""
    polling: Dict[str, int] = {}
    cores: Dict[str, Set[int]] = {}
    for process in processes:
        host = str(process["host"])
        polling[host] = polling.get(host, 0) + polls(protocol, process["ucx"]["env"])
        cores.setdefault(host, set()).update(process["affinity"])
    lines = [crowded(count, len(cores[host]), f" of {host}") for host, count in sorted(polling.items())]
    return [line for line in lines if line]
