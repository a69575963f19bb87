"""Tasks that do nothing: what the scheduler and its messages cost. After parsl-perf.

One repetition is what parsl-perf runs: batches, each larger than the one before, until one takes the target time (see
``task_batches``). Its last batch is the result, those before it are its warm-up, and all of them are kept in the run
record. In mode `fixed` a repetition is one batch of ``count`` tasks.

**A sample's seconds are those of ``count`` tasks at the rate of the last batch**, in every mode. The seconds of the
batch itself would compare nothing: in mode `estimate` the size follows from the speed, so that a fast variant and a
slow one take the same target time with different numbers of tasks. Seconds of a fixed number can be compared, between
modes too, and the rate is ``count`` over them. In mode `fixed` they are simply the batch's own.
"""

import importlib.util
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from gpubench.node import admission
from gpubench.node.workloads import dask_compat
from gpubench.node.workloads.base import Answer, Measurement, UnavailableError, judged
from gpubench.node.workloads.task_clients import Clients, TaskBatch, counted, next_size, shares

RESULT = 7


def seven(_argument: Any) -> int:
    return RESULT


class DaskSubmitter:
    """Batches through one ``distributed.Client``.

    Tasks are submitted by one ``client.map``, as a Dask user does, and their results gathered. The clock stops when
    the results are there, so it holds the gathering too. With ``argsize`` every task has a string of its own of as many
    bytes: Dask pickles a graph as a whole, and would send one string that all tasks share only once.
    """

    about: Dict[str, Any] = {}  # noqa: RUF012 - the run's provenance knows all of Dask

    def __init__(self, client: Any, argsize: int) -> None:
        self.client = client
        self.argsize = argsize

    def batch(self, count: int) -> TaskBatch:
        arguments = [f"{number:0{self.argsize}d}" for number in range(count)] if self.argsize else range(count)
        with dask_compat.finish_times(self.client) as finished:
            start = time.perf_counter()
            futures = self.client.map(seven, arguments, pure=False)
            submitted = time.perf_counter()
            results = self.client.gather(futures)
            end = time.perf_counter()
        latencies = [finished[future.key] - start for future in futures if future.key in finished]
        return TaskBatch(count, start, submitted, end, counted(results), latencies)

    def close(self) -> None:
        """``batch`` keeps no future."""


class OwnClient(DaskSubmitter):
    """The same, with a client of its own: what a further submitting process does."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        admission.close_to_others()
        from distributed import Client

        super().__init__(Client(facts["scheduler"], set_as_default=False), int(facts["argsize"]))

    def close(self) -> None:
        self.client.close()


def facts(context: Any, argsize: int) -> Dict[str, Any]:
    return {"scheduler": context.client.scheduler.address, "argsize": argsize}


RIGHT = repr(RESULT)


class Tasks(Measurement):
    """Many small messages between client, scheduler and workers, none between workers."""

    uses_transfer_log = False
    _submitter: Optional[Any] = None

    def __init__(self, context: Any, params: Any) -> None:
        super().__init__(context, params)
        self._kept: List[List[Dict[str, Any]]] = []

    @property
    def nominal_bytes(self) -> int:
        """None: what counts is tasks per second."""
        return 0

    @property
    def has_cost(self) -> bool:
        """Of a fixed number of tasks that this process submits."""
        return (self.backend, self.params["mode"], self.params["clients"]) == ("dask", "fixed", 1)

    @property
    def figures(self) -> Dict[str, Any]:
        """What submitted, and every batch of every repetition, warm-ups first."""
        return {**(self._submitter.about if self._submitter else {}), "repetitions": self._kept}

    def setup(self) -> None:
        """Start what submits.

        Raises:
            UnavailableError: parsl or the user's config of it is missing, or it can't reach the other nodes.
        """
        self._submitter = _SUBMITTERS[self.backend](self)

    def prepare(self) -> None:
        """Wait until nothing of the last repetition is left; there is nothing to generate.

        Dask takes back results after their futures are gone, in messages of its own: 12 to 20 ms behind 500 tasks,
        measured on two cores. A repetition that began at once would pay for the one before.
        """
        if self.backend == "dask":
            dask_compat.drain(self.context.client)

    def once(self) -> Tuple[float, List[TaskBatch]]:
        """Batches until the last; the seconds of ``count`` tasks at its rate."""
        assert self._submitter is not None
        done: List[TaskBatch] = []
        while True:
            size = next_size(self.params, done)
            if size is None:
                return done[-1].run_s * int(self.params["count"]) / done[-1].count, done
            done.append(self._submitter.batch(size))

    def check(self, answer: List[TaskBatch]) -> Answer:
        """Every batch has as many results as it had tasks, all right."""
        self._kept.append([batch.figures() for batch in answer])
        expected = sum(batch.count for batch in answer)
        results = sum(sum(batch.results.values()) for batch in answer)
        right = sum(batch.results.get(RIGHT, 0) for batch in answer)
        is_ok = bool(answer) and all(batch.results == {RIGHT: batch.count} for batch in answer)
        details = {"results": results, "expected": expected, "wrong": results - right}
        return judged(is_ok, details)

    def teardown(self) -> None:
        if self._submitter is not None:
            self._submitter.close()


def _dask(measurement: Tasks) -> Any:
    context, params = measurement.context, measurement.params
    clients, argsize = int(params["clients"]), int(params["argsize"])
    if clients == 1:
        return DaskSubmitter(context.client, argsize)
    return Clients("tasks:OwnClient", [facts(context, argsize)] * clients)


def _parsl(measurement: Tasks) -> Any:
    from distributed.comm.addressing import get_address_host
    from distributed.utils import get_ip

    context, params = measurement.context, measurement.params
    if importlib.util.find_spec("parsl") is None:
        raise UnavailableError("backend parsl needs the package parsl, which this image doesn't have")
    workers = len(context.workers) * context.threads_per_worker
    nodes = len({get_address_host(address) for address in context.workers})
    clients, config = int(params["clients"]), str(params["parsl_config"])
    if not config and params["parsl_provider"] == "local" and nodes > 1:
        raise UnavailableError(
            f"parsl's local provider starts workers on one node, and this cluster has {nodes}: "
            "parsl_provider = slurm or kubernetes, or a parsl_config"
        )
    if clients > workers:
        raise UnavailableError(f"{clients} clients of parsl need as many workers, each its own; there are {workers}")
    facts = {
        "argsize": int(params["argsize"]),
        "config": config,
        "provider": params["parsl_provider"],
        "partition": params["parsl_partition"],
        "account": params["parsl_account"],
        "address": get_ip(get_address_host(context.client.scheduler.address)),
        "nodes": nodes,
    }
    return Clients(
        "tasks_parsl:ParslSubmitter",
        [{**facts, "workers_per_node": share} for share in shares(workers // nodes, clients)],
    )


_SUBMITTERS: Dict[str, Callable[[Tasks], Any]] = {"dask": _dask, "parsl": _parsl}
