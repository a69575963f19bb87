"""The frames of dask-cuda's merge benchmark, number for number, and what joining them must give.

Source: ``dask_cuda/benchmarks/local_cudf_merge.py``. Base has b chunks of L rows, other has n. Base's keys
0 … b·L − 1 are unique; each of other's chunks takes an equal share of matching keys from each of the n ranges
0 … L − 1, L … 2·L − 1, …, and fills up with keys ≥ n·L. Where b = n those match nothing; where b > n, some of them do
match, and where b < n, keys of the upper ranges don't. Every chunk uses the same seed, which there was chosen to make
two workers exchange as much as possible.

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


def matches_per_pair(rows: int, other_chunks: int, frac_match: float) -> int:
    """How many keys one chunk of other takes from one range of ``rows`` keys."""
    return max(1, int((rows // other_chunks) * frac_match))


def joined_rows(rows: int, base_chunks: int, other_chunks: int, frac_match: float) -> int:
    """Rows of the join: other's keys below ``base_chunks`` · ``rows``, each of which base has once.

    Shares of the ranges that both have; and, where base has more, the fillers of other's first chunks, which continue
    where other's ranges end: those of chunk i begin at (n + i)·L and are fewer than L.
    """
    taken = matches_per_pair(rows, other_chunks, frac_match)
    shared = other_chunks * min(base_chunks, other_chunks) * taken
    chunks_filled_within = min(other_chunks, max(0, base_chunks - other_chunks))
    return shared + chunks_filled_within * (rows - other_chunks * taken)


def _base_chunk(rows: int, chunks: int, device: str) -> Tuple[Any, Any]:
    """Partition and payload of every row; alike in all base chunks because all use one seed."""
    xp = array_module(device)
    state = xp.random.RandomState(SEED)
    partitions = xp.repeat(xp.arange(chunks, dtype="int64"), -(-rows // chunks))
    scattered = state.permutation(partitions)[:rows]
    return scattered, state.permutation(xp.arange(rows, dtype="int64"))


def base_chunk(number: int, rows: int, chunks: int, device: str) -> Any:
    """Chunk ``number`` of base as generated, not scattered over partitions (``--no-shuffle``): key, payload."""
    xp = array_module(device)
    _, payload = _base_chunk(rows, chunks, device)
    keys = xp.arange(rows * number, rows * (number + 1), dtype="int64")
    return frame_module(device).DataFrame({"key": keys, "payload": payload})


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


def copied(frame: Any) -> Any:
    """A frame of the same data in memory of its own."""
    return frame.copy()


def expected_figures(
    number: int, *, rows: int, base_chunks: int, other_chunks: int, frac_match: float, scattered: bool, device: str
) -> Tuple[Figures, List[int]]:
    """What chunk ``number`` of other contributes to the join, by looking partners up instead of joining.

    Returns the figures, and how many of its partners lie in each of base's partitions (``scattered``: as
    ``base_partition`` makes them).
    """
    xp = array_module(device)
    partitions, payload = _base_chunk(rows, base_chunks, device)
    other = other_chunk(number, rows, other_chunks, frac_match, device)
    keys, payloads = xp.asarray(other["key"]), xp.asarray(other["payload"])
    has_partner = keys < rows * base_chunks
    keys, payloads = keys[has_partner], payloads[has_partner]
    places = keys % rows
    spread = xp.bincount(partitions[places] if scattered else keys // rows, minlength=base_chunks)
    return _figures(xp, keys, payload[places], payloads), [int(count) for count in spread]


def joined_figures(joined: Any, device: str) -> Figures:
    """The figures of one partition of the joined frame, whose key may have become its index."""
    xp = array_module(device)
    keys = joined["key"] if "key" in joined.columns else joined.index
    return _figures(xp, *(xp.asarray(column) for column in (keys, joined["payload_x"], joined["payload_y"])))


def key_range(joined: Any) -> List[int]:
    """Smallest and largest key of a partition indexed by key; whether it is sorted. Empty where there is no row."""
    index = joined.index
    return [int(index[0]), int(index[-1]), int(index.is_monotonic_increasing)] if len(index) else []


def are_apart(ranges: List[List[int]]) -> bool:
    """Sorted partitions, none of which reaches into another."""
    kept = sorted(one for one in ranges if one)
    return all(one[2] for one in kept) and all(one[1] < after[0] for one, after in zip(kept, kept[1:]))


def _figures(xp: Any, keys: Any, base_payloads: Any, other_payloads: Any) -> Figures:
    columns = (keys, base_payloads, other_payloads, base_payloads * other_payloads)
    return [len(keys), *(int(xp.sum(column)) % WRAP for column in columns)]


def added_up(parts: List[Figures]) -> Figures:
    """Figures of the whole from those of its parts."""
    return [sum(column) % WRAP for column in zip(*parts)]
