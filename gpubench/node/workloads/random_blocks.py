"""Blocks of random numbers that depend on their seed and place alone, each on the worker of its place."""

from typing import Any, Dict, Mapping, Sequence, Tuple

import dask.array
import distributed
import numpy as np

from gpubench.node.workloads import device
from gpubench.node.workloads.base import WorkloadContext

ITEM_BYTES = 8


def random_state(device_name: str, entropy: Tuple[int, ...]) -> Any:
    """Numbers that depend on all of ``entropy`` (seed, repetition, block) and on nothing else."""
    seed = np.random.SeedSequence(entropy).generate_state(1)[0]
    return device.array_module(device_name).random.RandomState(int(seed))


def uniform(device_name: str, entropy: Tuple[int, ...], shape: Tuple[int, ...]) -> Any:
    """Uniform on [0, 1). By SFC64 where there is NumPy: it takes half of MT19937's time, which no clock counts."""
    if device_name != "cpu":
        return random_state(device_name, entropy).random_sample(shape)
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(entropy))).random(shape)


def normal(device_name: str, entropy: Tuple[int, ...], shape: Tuple[int, ...]) -> Any:
    """Normal(10, 1)."""
    return random_state(device_name, entropy).normal(10.0, 1.0, shape)


def drawn(
    context: WorkloadContext,
    name: str,
    draw: Any,
    entropy: Tuple[int, ...],
    chunks: Tuple[Tuple[int, ...], ...],
    *,
    is_settled: bool,
    dtype: str = "float64",
) -> Any:
    """A two-dimensional array of blocks that ``draw`` (device, entropy + (i, j), shape) gives: settled, or lazy."""
    blocks = {
        (name, i, j): (draw, context.device, (*entropy, i, j), (rows, columns))
        for i, rows in enumerate(chunks[0])
        for j, columns in enumerate(chunks[1])
    }
    return array_of_blocks(context, name, settled(context, blocks) if is_settled else blocks, chunks, dtype)


def settled(
    context: WorkloadContext, blocks: Dict[Tuple[str, int, int], Tuple[Any, ...]]
) -> Dict[Tuple[str, int, int], Any]:
    """The future of each block, (function, *arguments), ``placed`` in row-major order, once all are there."""
    futures = context.placed(blocks)
    distributed.wait(list(futures.values()))
    return futures


def mirrored_bytes(array: Any, holders: Mapping[str, Sequence[str]]) -> int:
    """Bytes of one of x[i, j] and x[j, i], equally large, for every pair of blocks that no worker holds together.

    ``holders`` as ``dask_compat.holders``, of a square of items of 8 bytes.
    """
    total = 0
    for i, rows in enumerate(array.chunks[0]):
        for j, columns in enumerate(array.chunks[1][:i]):
            here, there = (holders[str((array.name, *place))] for place in ((i, j), (j, i)))
            total += 0 if set(here) & set(there) else int(rows * columns) * ITEM_BYTES
    return total


def array_of_blocks(
    context: WorkloadContext, name: str, graph: Dict[Any, Any], chunks: Tuple[Tuple[int, ...], ...], dtype: str
) -> Any:
    meta = device.array_module(context.device).empty((0, 0), dtype=dtype)
    return dask.array.Array(graph, name, chunks, meta=meta)
