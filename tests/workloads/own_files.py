"""Users' files on the tests' cluster, where ``node.pyz`` would have them: for client, scheduler and workers."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from distributed import Future

from gpubench.model.own_workload import OwnWorkload, packed_together, parse_own
from gpubench.node.workloads import families
from gpubench.node.workloads.base import Measurement, WorkloadContext


def parsed(word: str, folder: Path) -> OwnWorkload:
    """``FILE.py:NAME`` of a folder."""
    file, _, attribute = word.partition(":")
    return parse_own(file, attribute, lambda name: (folder / name).read_bytes(), str(folder / file))


def _place(folder: str, add: bool) -> None:
    import importlib

    import gpubench.node.workloads

    if add:
        gpubench.node.workloads.__path__.append(folder)
        importlib.invalidate_caches()
    else:
        gpubench.node.workloads.__path__.remove(folder)


def _place_everywhere(cluster: WorkloadContext, folder: str, add: bool) -> None:
    _place(folder, add)
    cluster.client.run_on_scheduler(_place, folder, add)
    cluster.client.run(_place, folder, add)


@contextlib.contextmanager
def packed(cluster: WorkloadContext, folder: Path, *workloads: OwnWorkload) -> Iterator[None]:
    """``folder`` takes the files; the cluster, which serves other tests too, forgets them at the end."""
    for path, content in packed_together(workloads).items():
        place = folder / path.removeprefix("gpubench/node/workloads/")
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content)
    _place_everywhere(cluster, str(folder), True)
    yield
    _place_everywhere(cluster, str(folder), False)
    # Errors hold the frames that raised them, and these the futures of tasks: the next tests want workers without any.
    cluster.client.cancel([Future(key, cluster.client) for key in list(cluster.client.futures)], force=True)


def create(
    own: OwnWorkload, cluster: WorkloadContext, params: Mapping[str, Any], *, backend: str = "dask"
) -> Measurement:
    """The measurement of it, with the plan's parameters: the defaults of its ``plan``, and ``params``."""
    defaults = {name: param.default for name, param in own.described.params.items()}
    return families.create(own.described.name, cluster, backend, own.with_identity({**defaults, **params}))
