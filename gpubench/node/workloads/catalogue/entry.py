"""How a workload is described: what can be set, what is timed and counted, what it needs."""

import dataclasses
from typing import Any, Callable, Mapping, Tuple


@dataclasses.dataclass(frozen=True)
class Param:
    """One parameter.

    ``kind`` is ``count`` (whole, ≥ 0), ``counts`` (a list of them), ``number`` (≥ 0), ``size`` (written with a unit,
    kept in bytes), ``duration`` (with a unit, kept in seconds), ``fraction``, ``flag``, ``choice``, ``name`` (a free
    word) or ``path``.
    ``original`` is what the prior system takes that this workload comes from, in its own spelling.
    """

    kind: str
    default: Any
    text: str
    choices: Tuple[str, ...] = ()
    original: str = ""


@dataclasses.dataclass(frozen=True)
class Shape:
    """The cluster that a workload is planned for."""

    nodes: int
    workers_per_node: int
    threads_per_worker: int

    @property
    def workers(self) -> int:
        """Of all nodes."""
        return self.nodes * self.workers_per_node

    @property
    def threads(self) -> int:
        """Of all workers."""
        return self.workers * self.threads_per_worker


@dataclasses.dataclass(frozen=True)
class Workload:
    """One measured operation.

    Args:
        factory: ``module:class``, the module inside ``gpubench.node.workloads``.
        scaling: ``weak`` (size grows with the workers), ``strong`` (fixed size) or ``none``.
        source: the prior system's name of it.
        timed: in words, what stands inside the clock.
        graph: whether building the graph is timed: ``timed``, ``before the clock`` or ``none``.
        counted: in words, which bytes are nominal.
        oracle: in words, what can call the answer wrong.
        held: bytes that one worker holds at a repetition's worst moment, 0 where that isn't worth counting.
        held_text: the arithmetic of ``held``, in words.
        grows: parameters that a larger preset raises, each with its exponent: ``held`` grows by the product.
        least_workers: it needs at least as many, all nodes together.
        needs: Python packages that a backend wants beside Dask, by backend, as ``name`` or ``name<version``.
        least_s: seconds that a repetition takes at least because its parameters say so; 0 where they don't.
        takes_any: whether there are parameters beside ``params``, of which nothing is known.
        fault: what is wrong with parameters that are right each for itself, in words, empty where nothing is.
        unlogged: whether what moves between workers passes none of Dask's logs with a back-end and parameters.
    """

    name: str
    factory: str
    family: str
    source: str
    scaling: str
    params: Mapping[str, Param]
    timed: str
    counted: str
    oracle: str
    backends: Tuple[str, ...] = ("dask",)
    devices: Tuple[str, ...] = ("cpu", "gpu")
    graph: str = "timed"
    held: Callable[[Mapping[str, Any], Shape], int] = lambda _params, _shape: 0
    held_text: str = "hardly anything"
    grows: Tuple[Tuple[str, float], ...] = ()
    least_workers: int = 1
    needs: Mapping[str, Tuple[str, ...]] = dataclasses.field(default_factory=dict)
    least_s: Callable[[Mapping[str, Any]], float] = lambda _params: 0.0
    takes_any: bool = False
    fault: Callable[[str, Mapping[str, Any]], str] = lambda _backend, _params: ""
    unlogged: Callable[[str, Mapping[str, Any]], bool] = lambda _backend, _params: False
