"""How fast each worker's core is, measured before and after the workloads: an average would hide a slow worker.

All workers do a fixed piece of work several times, at the same time, and the fastest time counts, because a short
disturbance does not make a worker slow. A piece takes longer than the kernel's time slice for two processes on one
core, so a process that shares a worker's core doubles even the fastest time.
"""

import statistics
import time
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from gpubench.node.machine import host

PIECES = 4
LONGEST_S = 1.0
"""No further piece is begun after that."""
STEPS = 200_000
"""Duration of one piece: about 20 ms."""
FACTOR = 1.5

Figures = Mapping[str, Any]
"""``name``, ``host``, and of the fastest piece ``wall_s`` and ``cpu_s`` (the processor time in it)."""


def _piece() -> Tuple[float, float]:
    wall, cpu = time.perf_counter(), time.thread_time()
    number = 1
    for _ in range(STEPS):
        number = (number * 1103515245 + 12345) % 2147483648
    return time.perf_counter() - wall, time.thread_time() - cpu


def probe(dask_worker: Any) -> Dict[str, Any]:
    """This worker's figures, for ``Client.run``; takes 0.1 s on a core of its own."""
    end = time.perf_counter() + LONGEST_S
    pieces = [_piece()]
    while len(pieces) < PIECES and time.perf_counter() < end:
        pieces.append(_piece())
    wall_s, cpu_s = min(pieces)
    return {"name": str(dask_worker.name), "host": host(), "wall_s": wall_s, "cpu_s": cpu_s}


def slow(probes: Sequence[Mapping[str, Figures]]) -> Dict[str, float]:
    """Workers that were slow in every probe: how many times as long as the median worker they took, the least of it.

    A worker is slow if it takes 1.5 times as long as the median worker. If even that one had to wait for its core (more
    processes than cores), the limit grows by the same factor, because all workers wait. The median is the lower one, so
    that of two workers the slower is compared with the faster.

    Args:
        probes: figures by worker address, one mapping per probe.
    """
    if not probes or not all(probes):
        return {}
    over = [_over(figures) for figures in probes]
    return {
        worker: min(factors[worker] for factors in over)
        for worker in over[0]
        if all(worker in factors for factors in over)
    }


def _over(figures: Mapping[str, Figures]) -> Dict[str, float]:
    median = statistics.median_low(figure["wall_s"] for figure in figures.values())
    waiting = statistics.median_low(figure["wall_s"] / max(figure["cpu_s"], 1e-9) for figure in figures.values())
    factors = {worker: figure["wall_s"] / median for worker, figure in figures.items()}
    return {worker: factor for worker, factor in factors.items() if factor > FACTOR * max(1.0, waiting)}


def warnings(probes: Sequence[Mapping[str, Figures]]) -> List[str]:
    """One for each slow worker."""
    when = "before and after the workloads" if len(probes) > 1 else "before the workloads"
    return [
        "slow worker: {name} on {host} takes at least {factor:.1f} times as long as the median worker, {when}".format(
            name=probes[0][worker]["name"], host=probes[0][worker]["host"], factor=factor, when=when
        )
        for worker, factor in sorted(slow(probes).items())
    ]


def table(probes: Sequence[Mapping[str, Figures]]) -> List[Dict[str, Any]]:
    """For the provenance: every worker's figures at every probe, in lists."""
    rows = []
    for worker in sorted(probes[0]) if probes else []:
        seen = [figures[worker] for figures in probes if worker in figures]
        rows.append(
            {
                "worker": worker,
                "name": seen[0]["name"],
                "host": seen[0]["host"],
                "wall_s": [figure["wall_s"] for figure in seen],
                "cpu_s": [figure["cpu_s"] for figure in seen],
            }
        )
    return rows
