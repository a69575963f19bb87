"""``node.pyz retire``: Dask moves the data of a node's workers to the others, and closes them."""

from typing import Any, List, Set

from gpubench.node.cluster_state import rank_of

CONNECT_S = 60.0


def workers_on(rank: int, dask_scheduler: Any) -> List[str]:
    """Addresses of the workers on this node, for ``run_on_scheduler``."""
    return [address for address, worker in dask_scheduler.workers.items() if rank_of(str(worker.name)) == rank]


def retire(address: str, rank: int) -> int:
    """Retire the workers on the node; raises SystemExit if some have data for which the others have no place."""
    from distributed import Client

    client = Client(address, timeout=CONNECT_S, name="gpubench-retire", set_as_default=False)
    try:
        retired: Set[str] = set()
        while True:  # a worker may register while others are retired
            left = set(client.run_on_scheduler(workers_on, rank))
            if not left or left & retired:
                break
            client.retire_workers(workers=sorted(left), close_workers=True)
            retired |= left
    finally:
        client.close()
    if left:
        raise SystemExit(f"no other worker has a place for the data of {', '.join(sorted(left))}")
    return 0
