"""What a workload family provides, and what it is given.

Node half: Python 3.9; dask, distributed, numpy, pandas as the image has them (2022.11 to the newest).
"""

import abc
import dataclasses
import uuid
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from gpubench.node.workloads.counters import Counters


@dataclasses.dataclass(frozen=True)
class WorkloadContext:
    """The running cluster.

    ``client`` is a ``distributed.Client``; ``workers`` the addresses of all workers, by node and GPU; ``device`` is
    ``cpu`` or ``gpu``; ``binding`` names the communication library that Dask uses (``tcp ucxx ucx-py``). ``shared`` is
    a directory that all nodes see, for data that is read from files; empty where none is known. ``counters`` are read
    around each repetition, None: no counter is.
    """

    client: Any
    workers: List[str]
    threads_per_worker: int
    device: str
    binding: str
    seed: int = 20221107
    shared: str = ""
    counters: Optional[Counters] = None

    def placed(self, tasks: Mapping[Any, Tuple[Any, ...]]) -> Dict[Any, Any]:
        """The future of each task, (function, *arguments), by its key, on its way.

        They are dealt out in their order, an equal contiguous share to every worker in the order of ``workers``. Left
        to itself, Dask places them by the moment's load: between no and all of a transpose's block pairs then lie
        apart, differently in each repetition, and that would be most of what one measures.
        """
        workers = self.workers
        return {
            key: self.client.submit(*task, key=key, workers=[workers[position * len(workers) // len(tasks)]])
            for position, (key, task) in enumerate(tasks.items())
        }


class UnavailableError(Exception):
    """This image can't measure a workload: it lacks what the back-end needs. The message says what, and what it has."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """Outcome of the oracle: ``ok``, ``wrong``, or ``unchecked`` where there is none; with plain JSON figures."""

    status: str
    details: Dict[str, Any]


def judged(is_right: bool, details: Dict[str, Any]) -> Answer:
    """The outcome of an oracle that can tell."""
    return Answer("ok" if is_right else "wrong", details)


KEPT_BYTES = 64 * 1024**2
"""Data of up to so many bytes on a worker is generated once and copied before each repetition, in a tenth of the time.
Larger data is generated anew, because memory may not hold it twice; on a GPU always."""


class Measurement(abc.ABC):
    """One workload on one cluster, from data generation to clean-up.

    The life cycle is ``setup`` once, then for every repetition ``prepare``, ``once`` and ``check``, then ``teardown``.
    Only what the catalogue calls *timed* stands between the two clock readings of ``once``.

    Data that a repetition consumes is generated in ``prepare``, not in ``setup``: a Dask worker keeps a copy of every
    block that it fetched for as long as the block lives, so a second pass over the same data would move nothing, or
    something that depends on when the scheduler last pruned the copies.
    """

    uses_transfer_log = True
    """False where nothing moves through Dask: then nobody asks the workers for their logs around each repetition."""

    by_workers = True
    """Whether the workers' own processes carry ``links_own``, so that their UCX must have what the site needs."""

    backend = "dask"
    """Which of the catalogue's back-ends measures; set before ``setup``."""

    _data: Any = None
    """What the prepared repetition works on."""

    def __init__(self, context: WorkloadContext, params: Mapping[str, Any]) -> None:
        self.context = context
        self.params = params
        self._token = uuid.uuid4().hex[:8]
        self._round = 0

    @property
    def name(self) -> str:
        """Of this repetition's data: no other collection on the cluster has it."""
        return f"{type(self).__name__}-{self._token}-{self._round}"

    @property
    @abc.abstractmethod
    def nominal_bytes(self) -> int:
        """Size of one repetition in bytes, as the catalogue says."""

    @property
    def least_moved_bytes(self) -> int:
        """Bytes that the prepared repetition can't do without moving between worker processes, 0 where nothing must.

        Nothing is sure to move, unless a workload says more. A floor from where the data lies, which is the same in
        every repetition: asked once, after the first ``prepare`` and before ``once``, which leaves copies behind. What
        Dask really moves is more.
        """
        return 0

    @property
    def has_cost(self) -> bool:
        """Whether processor seconds and joules of a repetition can be compared.

        No where it works in processes of its own, or where how much it does follows from its speed.
        """
        return True

    @property
    def keeps_originals(self) -> bool:
        """Whether data is copied before each repetition instead of being generated anew."""
        return self.context.device == "cpu" and self.nominal_bytes <= KEPT_BYTES * len(self.context.workers)

    @property
    def links_own(self) -> List[Dict[str, Any]]:
        """What the last ``once`` moved between worker processes outside of Dask's transfer log, as ``links.Link``.

        Nothing for whatever leaves its traffic to Dask. A workload that talks through the communication library itself
        reports here only what the *receiving* sides counted, so that the caller may add it to the log's bytes.
        """
        return []

    @property
    def talks_past_log(self) -> bool:
        """Whether all workers send to each other, and neither Dask's transfer log nor ``links_own`` shows it: their UCX
        must have what the site needs.
        """
        return False

    @property
    def figures(self) -> Dict[str, Any]:
        """What the run record keeps of all repetitions, beside the last answer's details (plain JSON values)."""
        return {}

    def setup(self) -> None:  # noqa: B027 - most workloads need nothing
        """Do what is needed once: open connections, compute what every answer must be."""

    @abc.abstractmethod
    def prepare(self) -> None:
        """Generate the data of the next repetition, spread it over the workers and wait until it has settled."""

    @abc.abstractmethod
    def once(self) -> Tuple[float, Any]:
        """Do the timed thing once: (seconds, the answer for ``check``)."""

    @abc.abstractmethod
    def check(self, answer: Any) -> Answer:
        """Compare the answer with what must come out."""

    def teardown(self) -> None:
        """Release every future and connection, so that the next workload finds empty workers; also after a failure."""
        self._data = None


def partials_moved(holders: Iterable[Sequence[str]]) -> int:
    """How many partial results must move: from each worker that alone holds blocks, but the one that adds them up.

    ``holders`` are the workers that hold each block.
    """
    return max(0, len({workers[0] for workers in holders if len(workers) == 1}) - 1)


WRAP = 2**64
"""Sums of int64 wrap around; figures of answers are compared modulo this."""
Figures = List[int]


def added_up(parts: Sequence[Figures]) -> Figures:
    """Figures of the whole from those of its parts, modulo 2⁶⁴."""
    return [sum(column) % WRAP for column in zip(*parts)]
