"""Dataframes that lie on the workers, in fixed places, before the clock starts."""

from typing import Any, Callable, List, Sequence, Tuple

import dask.dataframe
import distributed

from gpubench.node.workloads.base import WorkloadContext


def settled(
    context: WorkloadContext, name: str, parts: Sequence[Tuple[Any, ...]], meta: Any, divisions: Tuple[Any, ...] = ()
) -> Any:
    """``begun``, and waited for."""
    frame = begun(context, name, parts, meta, divisions)
    distributed.wait(frame)
    return frame


def begun(
    context: WorkloadContext, name: str, parts: Sequence[Tuple[Any, ...]], meta: Any, divisions: Tuple[Any, ...] = ()
) -> Any:
    """A persisted frame of one partition per entry of ``parts``, each (function, *arguments), on its way.

    ``name`` is new in every repetition. ``divisions`` are unknown unless given.
    """
    known = divisions or (None,) * (len(parts) + 1)
    futures = placed(context, name, parts)
    return context.client.persist(dask.dataframe.from_delayed(futures, meta=meta, divisions=known, verify_meta=False))


def placed(context: WorkloadContext, name: str, parts: Sequence[Tuple[Any, ...]]) -> List[Any]:
    """The future of every part, ``placed`` in their order."""
    return list(context.placed({f"{name}-{number}": part for number, part in enumerate(parts)}).values())


def generated(function: Callable[..., Any], numbers: Sequence[int], arguments: Tuple[Any, ...], meta: Any) -> Any:
    """A lazy frame whose partitions are ``function(number, *arguments)``, made wherever and whenever it is used."""
    return dask.dataframe.from_map(function, numbers, args=arguments, meta=meta, enforce_metadata=False)


def fewest_away(context: WorkloadContext, parts: int) -> int:
    """Of so many settled partitions, how many lie apart from the worker that has most of them."""
    workers = len(context.workers)
    held = [number * workers // parts for number in range(parts)]
    return parts - max(held.count(worker) for worker in range(workers))
