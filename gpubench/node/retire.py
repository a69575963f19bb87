"""Retires all workers of given nodes of a standing cluster; Dask first moves their data to other workers."""

import json
from pathlib import Path
from typing import Any, Dict, List, Sequence

from gpubench.writer.atomic import write_atomic

CONNECT_S = 60.0


def rank_of(name: str) -> int:
    """``worker-3-0`` → 3, the rank of its node; -1 for a worker that isn't ours."""
    words = name.split("-")
    return int(words[1]) if len(words) > 2 and words[0] == "worker" and words[1].isdigit() else -1


def workers_on(ranks: Sequence[int], dask_scheduler: Any) -> List[str]:
    """Addresses of the workers on these nodes, for ``run_on_scheduler``."""
    return [address for address, worker in dask_scheduler.workers.items() if rank_of(str(worker.name)) in ranks]


def retire(address: str, ranks: Sequence[int], answer: Path) -> int:
    """Have Dask move away what these workers hold and close them; ``answer`` says how many it did, and who is left.

    Returns the process's exit code.
    """
    from distributed import Client

    client = Client(address, timeout=CONNECT_S, name="gpubench-retire", set_as_default=False)
    try:
        addresses = client.run_on_scheduler(workers_on, list(ranks))
        if addresses:
            client.retire_workers(workers=addresses, close_workers=True)
        left = client.run_on_scheduler(workers_on, list(ranks))
    finally:
        client.close()
    said: Dict[str, Any] = {"retired": len(addresses) - len(left), "left": sorted(left)}
    write_atomic(answer, json.dumps(said).encode("utf-8"))
    return 0
