"""Back-end ``explicit-comms``: dask-cuda's own all-to-all shuffle, past Dask's scheduler and its transfer log.

In dask-cuda up to 26.4 (deprecated there); gone in 26.6, as the wheels show.
"""

import importlib.util
from typing import Any, Callable, List

import dask

from gpubench.node.workloads import dask_compat
from gpubench.node.workloads.base import UnavailableError

BACKEND = "explicit-comms"


def load() -> None:
    """Import dask-cuda, which thereby teaches Dask its shuffle.

    Raises:
        UnavailableError: there is none, or one without explicit comms.
    """
    wanted = "explicit-comms needs dask-cuda before 26.6"
    if importlib.util.find_spec("dask_cuda") is None:
        raise UnavailableError(f"{wanted}, and this image has no dask-cuda")
    import dask_cuda

    if importlib.util.find_spec("dask_cuda.explicit_comms") is None:
        raise UnavailableError(f"{wanted}, and this image has {dask_cuda.__version__}")


def persist(client: Any, lazy: Callable[[], Any]) -> List[Any]:
    """Build a collection with explicit comms and submit it: the futures of its partitions.

    Its graph is made here, as dask-cuda does for ``compute``: the shuffle needs a client, which there is none of in the
    scheduler, where Dask since 2025.4 would make it (https://github.com/rapidsai/dask-cuda/pull/1462).
    """
    with dask.config.set(explicit_comms=True):
        graph, keys = dask_compat.materialised(client, lazy())
        futures: List[Any] = client.get(graph, keys, sync=False)
    return futures


def check_used(client: Any) -> None:
    """Every worker has talked by explicit comms: Dask may also join without a shuffle, for which there are none.

    Raises:
        UnavailableError: one hasn't.
    """
    if not all(client.run(_has_talked).values()):
        raise UnavailableError('Dask joined without a shuffle, so without explicit-comms: set join = "shuffle"')


def _has_talked(dask_worker: Any) -> bool:
    # dask_cuda/explicit_comms/comms.py, worker_state; the same from 22.12 to 26.4
    return bool(getattr(dask_worker, "_explicit_comm_state", None))
