"""The frames of dask-cuda's merge benchmark, number for number, and what joining them must give.

Source: ``dask_cuda/benchmarks/local_cudf_merge.py``. With n chunks of L rows in each frame: base keys 0 … n·L − 1 are
unique and lie scattered over base's n partitions; each of other's n chunks takes an equal share of its matching keys
from every base chunk's range, and fills up with keys ≥ n·L that match nothing. Every chunk uses the same seed, which
there was chosen to make two workers exchange as much as possible.

All functions run in the workers; ``device`` is ``cpu`` or ``gpu``.
"""

from typing import Any, List, Tuple

from gpubench.workloads.device import array_module, frame_module

SEED = 2**32 - 1
WRAP = 2**64
"""Sums of int64 wrap around; they are compared modulo this."""

Figures = List[int]
"""Rows, and modulo 2⁶⁴ the sums of key, base payload, other payload, and of the product of the payloads, which changes
when rows are paired wrongly although both sides are complete."""


def matches_per_pair(rows: int, chunks: int, frac_match: float) -> int:
    """How many keys one chunk of other takes from the range of one chunk of base."""
    return max(1, int((rows // chunks) * frac_match))


def _base_chunk(rows: int, chunks: int, device: str) -> Tuple[Any, Any]:
    """Partition and payload of every row; alike in all base chunks because all use one seed."""
    xp = array_module(device)
    state = xp.random.RandomState(SEED)
    partitions = xp.repeat(xp.arange(chunks, dtype="int64"), -(-rows // chunks))
    scattered = state.permutation(partitions)[:rows]
    return scattered, state.permutation(xp.arange(rows, dtype="int64"))


def base_partition(number: int, rows: int, chunks: int, device: str) -> Any:
    """Partition ``number`` of base as it is after dask-cuda's ``set_index("shuffle")``: index, key, payload.

    Made where it belongs: the shuffle that brings it there isn't timed, and would place it by chance.
    """
    xp = array_module(device)
    partitions, payload = _base_chunk(rows, chunks, device)
    (positions,) = xp.nonzero(partitions == number)
    keys = (xp.arange(chunks, dtype="int64")[:, None] * rows + positions[None, :]).ravel()
    columns = {"key": keys, "payload": xp.tile(payload[positions], chunks)}
    frames = frame_module(device)
    index = frames.Index(xp.full(len(keys), number, dtype="int64"), name="shuffle")
    return frames.DataFrame(columns, index=index)


def other_chunk(number: int, rows: int, chunks: int, frac_match: float, device: str) -> Any:
    """Chunk ``number`` of other: key, payload."""
    xp = array_module(device)
    state = xp.random.RandomState(SEED)
    share = rows // chunks
    taken = matches_per_pair(rows, chunks, frac_match)
    starts = [rows * chunk + share * number for chunk in range(chunks)]
    matching = [state.permutation(xp.arange(start, start + share, dtype="int64"))[:taken] for start in starts]
    missing = rows - sum(len(keys) for keys in matching)
    beyond = rows * chunks + rows * number
    keys = xp.concatenate([*matching, xp.arange(beyond, beyond + missing, dtype="int64")])
    columns = {"key": state.permutation(keys), "payload": state.permutation(xp.arange(rows, dtype="int64"))}
    return frame_module(device).DataFrame(columns)


def expected_figures(number: int, rows: int, chunks: int, frac_match: float, device: str) -> Tuple[Figures, List[int]]:
    """What chunk ``number`` of other contributes to the join, by looking partners up instead of joining.

    Returns the figures, and how many of its partners lie in each of base's partitions.
    """
    xp = array_module(device)
    partitions, payload = _base_chunk(rows, chunks, device)
    other = other_chunk(number, rows, chunks, frac_match, device)
    keys, payloads = xp.asarray(other["key"]), xp.asarray(other["payload"])
    has_partner = keys < rows * chunks
    keys, payloads = keys[has_partner], payloads[has_partner]
    places = keys % rows
    spread = xp.bincount(partitions[places], minlength=chunks)
    return _figures(xp, keys, payload[places], payloads), [int(count) for count in spread]


def joined_figures(joined: Any, device: str) -> Figures:
    """The figures of one partition of the joined frame."""
    columns = (joined[name] for name in ("key", "payload_x", "payload_y"))
    xp = array_module(device)
    return _figures(xp, *(xp.asarray(column) for column in columns))


def _figures(xp: Any, keys: Any, base_payloads: Any, other_payloads: Any) -> Figures:
    columns = (keys, base_payloads, other_payloads, base_payloads * other_payloads)
    return [len(keys), *(int(xp.sum(column)) % WRAP for column in columns)]


def added_up(parts: List[Figures]) -> Figures:
    """Figures of the whole from those of its parts."""
    return [sum(column) % WRAP for column in zip(*parts)]
