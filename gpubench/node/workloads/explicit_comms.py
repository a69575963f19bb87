"""Back-end ``explicit-comms``: dask-cuda's own all-to-all shuffle, past Dask's scheduler and its transfer log.

In dask-cuda up to 26.4 (deprecated there); gone in 26.6, as the wheels show.
"""

import contextlib
import importlib.util
from typing import Any, Callable, Iterator, List

import dask

from gpubench.node.workloads import dask_compat
from gpubench.node.workloads.base import UnavailableError

BACKEND = "explicit-comms"
NO_CLIENT = "No clients found"
"""How ``distributed.client.default_client`` begins in a process that has none."""


def connected(client: Any) -> Any:
    """Import dask-cuda, which thereby teaches Dask its shuffle, and let it connect each worker to every other one.

    The connections serve for as long as what is returned lives. Since 25.04 dask-cuda itself lets go of them behind
    every shuffle and makes new ones in the next (https://github.com/rapidsai/dask-cuda/pull/1451): with two workers
    that took half of a small join's time, in steps of 0.1 s, and the old ones stay open in the workers.

    Raises:
        UnavailableError: there is none, or one without explicit comms.
    """
    wanted = "explicit-comms needs dask-cuda before 26.6"
    if importlib.util.find_spec("dask_cuda") is None:
        raise UnavailableError(f"{wanted}, and this image has no dask-cuda")
    import dask_cuda

    if importlib.util.find_spec("dask_cuda.explicit_comms") is None:
        raise UnavailableError(f"{wanted}, and this image has {dask_cuda.__version__}")
    from dask_cuda.explicit_comms import comms

    return comms.default_comms(client)


def persist(client: Any, lazy: Callable[[], Any]) -> List[Any]:
    """Build a collection with explicit comms and submit it: the futures of its partitions.

    Its graph is made here, as dask-cuda does for ``compute``: the shuffle needs a client, which there is none of in the
    scheduler, where Dask since 2025.4 would make it (https://github.com/rapidsai/dask-cuda/pull/1462).

    Raises:
        UnavailableError: Dask joins without a shuffle, for which there are no explicit comms; or it asks for the
            divisions of an index while it makes the graph, and the graph of that question is made in the scheduler.
    """
    with dask.config.set(explicit_comms=True), _counted() as shuffles:
        try:
            graph, keys = dask_compat.materialised(client, lazy())
        except ValueError as error:
            if not str(error).startswith(NO_CLIENT):
                raise
            why = "Dask since 2025.4 seeks an index's divisions in its scheduler, where explicit-comms has no client"
            raise UnavailableError(f"{why}: leave set_index out") from error
    if not shuffles:
        raise UnavailableError('Dask joined without a shuffle, so without explicit-comms: set join = "shuffle"')
    futures: List[Any] = client.get(graph, keys, sync=False)
    return futures


@contextlib.contextmanager
def _counted() -> Iterator[List[Any]]:
    """An entry for each shuffle by explicit comms, made while this process builds a graph.

    What a worker keeps of explicit comms tells nothing: it stays there for the workloads that follow.
    Source: ``shuffle`` is called by its name in the module, from 22.12 to 26.4 (shuffle.py:400@v22.12.00,
    691@v26.04.00).
    """
    from dask_cuda.explicit_comms.dataframe import shuffle as module

    shuffle = module.shuffle
    made: List[Any] = []

    def noted(*arguments: Any, **options: Any) -> Any:
        made.append(None)
        return shuffle(*arguments, **options)

    module.shuffle = noted
    try:
        yield made
    finally:
        module.shuffle = shuffle
