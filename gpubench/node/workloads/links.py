"""Bytes that moved between worker processes: from the receiving workers' own transfer logs, or as a workload counted.

A row of ``links.jsonl`` is one ordered pair of workers in one workload, summed over its timed repetitions:

- ``workload``, ``params_id``: what moved it;
- ``receiver``, ``sender``: addresses of the workers, as ``processes`` of the provenance has them with their hosts;
- ``bytes``, ``count``: what the receiver got, in how many transfers;
- ``seconds``: sum of the transfers' durations, as the receiver saw them; of messages half of their round trips, since
  one way can't be timed apart from the other;
- ``round_trip_s``: of messages only: quantiles of the seconds per round trip, the same in both rows of a pair.

Readers leave out what they don't know and live with what is missing: rows of other workloads have no ``round_trip_s``.
"""

import functools
import os
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from gpubench.node.workloads import dask_compat

Link = Dict[str, Any]
"""``receiver``, ``sender``, ``bytes``, ``count``, ``seconds``; of messages ``trips_s``: each round trip's seconds."""

QUANTILES = {"min": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95, "max": 1.0}


def _cut(dask_worker: Any) -> int:
    dask_compat.incoming_log(dask_worker).clear()
    return os.getpid()


def _since(dask_worker: Any, marks: Dict[str, int]) -> List[Tuple[str, int, float]]:
    if marks.get(dask_worker.address) != os.getpid():
        raise RuntimeError(f"worker {dask_worker.address} joined or restarted while its traffic was being counted")
    entries = list(dask_compat.incoming_log(dask_worker))
    return [(entry["who"], int(entry["total"]), float(entry["duration"])) for entry in entries]


def mark(client: Any) -> Dict[str, int]:
    """Empty every worker's log, and let it grow without a bound: process ids by address.

    Emptied, not only marked: a log that grew over all repetitions would be a leak of the benchmark's own.
    """
    return dict(client.run(_cut))


def collect(client: Any, marks: Dict[str, int]) -> List[Link]:
    """What each worker fetched from each other one since ``marks``; pairs without traffic are left out.

    Bytes are sizes of Dask results in memory, so headers and the workers' talk with the scheduler are not in them.

    Raises:
        RuntimeError: a worker joined after ``marks`` were taken, or is another process than then.
    """
    logs = client.run(functools.partial(_since, marks=marks))
    return summed(
        {"receiver": receiver, "sender": sender, "bytes": size, "count": 1, "seconds": seconds}
        for receiver, entries in logs.items()
        for sender, size, seconds in entries
    )


def summed(links: Iterable[Link]) -> List[Link]:
    """One link per ordered pair of workers, sums over ``links``, sorted; ``trips_s`` one after the other."""
    sums: Dict[Tuple[str, str], Link] = {}
    for link in links:
        pair = (link["receiver"], link["sender"])
        total = sums.setdefault(pair, {"receiver": pair[0], "sender": pair[1], "bytes": 0, "count": 0, "seconds": 0.0})
        for figure in ("bytes", "count", "seconds"):
            total[figure] += link[figure]
        if "trips_s" in link:
            total["trips_s"] = [*total.get("trips_s", []), *link["trips_s"]]
    return [sums[pair] for pair in sorted(sums)]


def rows(links: Iterable[Link]) -> List[Link]:
    """The links as they are stored: quantiles instead of every round trip."""
    return [
        {
            **{name: value for name, value in link.items() if name != "trips_s"},
            **({"round_trip_s": quantiles(link["trips_s"])} if link.get("trips_s") else {}),
        }
        for link in links
    ]


def quantiles(values: Sequence[float]) -> Dict[str, float]:
    """``min q25 median q75 q95 max`` of at least one value, linear between neighbours (Hyndman and Fan's type 7)."""
    ordered = sorted(values)
    quantiles_by_name = {}
    for name, share in QUANTILES.items():
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        quantiles_by_name[name] = ordered[below] + (place - below) * (ordered[above] - ordered[below])
    return quantiles_by_name
