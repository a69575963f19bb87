"""Batches of tasks that do nothing: how large the next one is, and what is kept of each.

Node half: Python 3.9, standard library only.
"""

import dataclasses
from typing import Any, Dict, List, Mapping, Optional, Sequence

FIRST = 10
"""Tasks of the first batch where the sizes are not given: enough to have every worker wake up, whatever it is."""
CLOSE_ENOUGH = 0.75
"""Of the target: a batch that took as long ends mode `estimate`."""
LEAST_BATCHES = 2
"""The first is the warm-up."""
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


@dataclasses.dataclass
class TaskBatch:
    """One submission of ``count`` tasks.

    Args:
        count: how many were submitted.
        start: reading of the monotonic clock before the first submission, of this machine's boot.
        submitted: after the last submission.
        end: when every result had arrived.
        results: how often which result came (by its text).
        latencies: of each task, seconds from its submission until the client saw that it was done; empty where a
            client can't see that.
    """

    count: int
    start: float
    submitted: float
    end: float
    results: Dict[str, int]
    latencies: List[float]

    @property
    def submit_s(self) -> float:
        """Until the last task was submitted."""
        return self.submitted - self.start

    @property
    def run_s(self) -> float:
        """Until the last result had arrived."""
        return self.end - self.start

    def figures(self) -> Dict[str, Any]:
        """What the run record keeps of it: tasks, seconds, rates per second, latency quantiles in seconds."""
        return {
            "tasks": self.count,
            "submit_s": self.submit_s,
            "run_s": self.run_s,
            "submit_per_s": self.count / self.submit_s,
            "tasks_per_s": self.count / self.run_s,
            "latency_s": quantiles(self.latencies),
        }


def joined(parts: Sequence[TaskBatch]) -> TaskBatch:
    """The batches that several clients of one machine ran at the same time, as one."""
    results: Dict[str, int] = {}
    for part in parts:
        for result, times in part.results.items():
            results[result] = results.get(result, 0) + times
    return TaskBatch(
        count=sum(part.count for part in parts),
        start=min(part.start for part in parts),
        submitted=max(part.submitted for part in parts),
        end=max(part.end for part in parts),
        results=results,
        latencies=[latency for part in parts for latency in part.latencies],
    )


def counted(results: Sequence[Any]) -> Dict[str, int]:
    """How often which result came."""
    texts = [repr(result) for result in results]
    return {text: texts.count(text) for text in set(texts)}


def quantiles(values: Sequence[float]) -> Dict[str, float]:
    """The smallest value that at least this share of ``values`` doesn't exceed, by name; nothing of nothing."""
    ordered = sorted(values)
    return {
        name: ordered[max(0, -(-len(ordered) * round(1000 * share) // 1000) - 1)]
        for name, share in QUANTILES.items()
        if ordered
    }


def next_size(params: Mapping[str, Any], done: Sequence[TaskBatch]) -> Optional[int]:
    """How many tasks the next batch has, None when the last one was the last.

    As parsl-perf (``parsl/benchmark/perf.py``): `estimate` takes as many as the last rate gives in the target time,
    until a batch took three quarters of it; `exponential` doubles until one took all of it; both at least twice.
    `explicit` takes the sizes that it is given. `fixed`, which parsl-perf doesn't have, is one batch.
    """
    mode, target = params["mode"], float(params["target"])
    if mode in ("fixed", "explicit"):
        sizes = [int(size) for size in ([params["count"]] if mode == "fixed" else params["batches"])]
        return sizes[len(done)] if len(done) < len(sizes) else None
    if not done:
        return FIRST
    last = done[-1]
    if len(done) >= LEAST_BATCHES and last.run_s >= target * (CLOSE_ENOUGH if mode == "estimate" else 1.0):
        return None
    return max(1, int(target * last.count / last.run_s)) if mode == "estimate" else 2 * last.count


def shares(count: int, clients: int) -> List[int]:
    """``count`` over as many clients, as evenly as whole numbers allow."""
    return [count // clients + (index < count % clients) for index in range(clients)]
