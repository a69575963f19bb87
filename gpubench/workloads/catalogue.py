"""What can be measured: plain data, so that the tool can plan and explain without importing dask.

Node half: Python 3.9, standard library only. The tool imports this file and nothing else of the workloads.
"""

import dataclasses
from typing import Any, Dict, Mapping, Tuple


@dataclasses.dataclass(frozen=True)
class Param:
    """One parameter: ``kind`` is ``count size fraction flag choice``; sizes are written with a unit, kept in bytes."""

    kind: str
    default: Any
    text: str
    choices: Tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Workload:
    """One measured operation.

    ``factory`` is ``module:class``, the module inside ``gpubench.workloads``. ``scaling`` is ``weak`` (size grows with
    the workers), ``strong`` (fixed size) or ``none``. ``timed``, ``counted`` and ``oracle`` say in words what stands
    inside the clock, which bytes are nominal, and what can call the answer wrong.
    """

    name: str
    factory: str
    family: str
    scaling: str
    backends: Tuple[str, ...]
    devices: Tuple[str, ...]
    params: Mapping[str, Param]
    timed: str
    counted: str
    oracle: str


_BOTH = ("cpu", "gpu")

_ALL = (
    Workload(
        name="merge",
        factory="merge:Merge",
        family="dataframe",
        scaling="weak",
        backends=("dask",),
        devices=_BOTH,
        params={
            "rows_per_worker": Param("count", 200_000, "rows of each of the two frames per worker"),
            "frac_match": Param("fraction", 0.3, "share of the second frame's rows that find a partner"),
            "join": Param(
                "choice",
                "default",
                "how Dask joins: its own choice, always by shuffling both sides, or by sending one side everywhere",
                choices=("default", "shuffle", "broadcast"),
            ),
        },
        timed="building the graph of the inner join on `key`, persisting it, waiting",
        counted="rows × item sizes of both input frames (two int64 columns each)",
        oracle="exact row count, and exact sums over keys, both payloads and their products, from the generator alone",
    ),
    Workload(
        name="transpose-sum",
        factory="transpose_sum:TransposeSum",
        family="array",
        scaling="strong",
        backends=("dask",),
        devices=_BOTH,
        params={
            "size": Param("count", 3000, "rows and columns of the array of float64"),
            "chunk": Param("count", 1000, "rows and columns of one chunk"),
        },
        timed="persisting (x + x.T).sum() of an array that lies on the workers, waiting",
        counted="size² × 8",
        oracle="equals 2·sum(x), summed apart from it, to 1e-9; size² within 6 standard deviations",
    ),
    Workload(
        name="strided-sum",
        factory="strided_sum:StridedSum",
        family="array",
        scaling="strong",
        backends=("dask",),
        devices=_BOTH,
        params={
            "size": Param("count", 4000, "rows and columns of the array of float64"),
            "chunk": Param("count", 1000, "rows and columns of one chunk"),
            "generate": Param("flag", False, "draw the array inside the clock, as DeepOps does"),
        },
        timed="persisting ((x + 1)[::2, ::2]).sum(), waiting",
        counted="size² × 8",
        oracle="equals sum(x[::2, ::2]) + count, summed apart from it, to 1e-9; 11·count within 6 standard deviations",
    ),
    Workload(
        name="tasks",
        factory="tasks:Tasks",
        family="scheduler",
        scaling="none",
        backends=("dask",),
        devices=_BOTH,
        params={"count": Param("count", 500, "no-op tasks per repetition")},
        timed="submitting `count` tasks that do nothing, waiting for all, gathering their results",
        counted="nothing; the rate is tasks over seconds",
        oracle="exactly `count` results, each of them 7",
    ),
    Workload(
        name="message",
        factory="message:Message",
        family="communication",
        scaling="none",
        backends=("dask",),
        devices=_BOTH,
        params={
            "size": Param("size", 10_000_000, "bytes of one message"),
            "round_trips": Param("count", 5, "ping-pongs per pair of workers and repetition"),
        },
        timed="ping-pongs in the workers' event loops, every pair of workers in turn, seconds summed over the pairs",
        counted="2 × size × round trips × pairs",
        oracle="what comes back equals what was sent (a pattern that changes with every repetition and trip), the far "
        "side counted as many bytes, and the two sides are different processes",
    ),
)

CATALOGUE: Dict[str, Workload] = {workload.name: workload for workload in _ALL}
