"""Inner join of two frames on an unsorted key: dask-cuda's ``local_cudf_merge``.

The frames are those of dask-cuda's benchmark, number for number. Source: ``dask_cuda/benchmarks/local_cudf_merge.py``.
Base has b chunks of L rows, other has n. Base's keys 0 … b·L − 1 are unique; each of other's chunks takes an equal
share of matching keys from each of the n ranges 0 … L − 1, L … 2·L − 1, …, and fills up with keys ≥ n·L. Where b = n
those match nothing; where b > n, some of them do match, and where b < n, keys of the upper ranges don't. Every chunk
uses the same seed, which there was chosen to make two workers exchange as much as possible.

All functions up to the class run in the workers; ``device`` is ``cpu`` or ``gpu``.
"""

import functools
import time
from typing import Any, Dict, List, Tuple

import distributed

from gpubench.node.workloads import dask_compat, device, explicit_comms, frames
from gpubench.node.workloads.base import WRAP, Answer, WorkloadContext, added_up, judged
from gpubench.node.workloads.device import array_module, frame_module
from gpubench.node.workloads.lazy import LazyMeasurement

SEED = 2**32 - 1

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
    kept = sorted(limits for limits in ranges if limits)
    return all(limits[2] for limits in kept) and all(limits[1] < after[0] for limits, after in zip(kept, kept[1:]))


def _figures(xp: Any, keys: Any, base_payloads: Any, other_payloads: Any) -> Figures:
    columns = (keys, base_payloads, other_payloads, base_payloads * other_payloads)
    return [len(keys), *(int(xp.sum(column)) % WRAP for column in columns)]


COLUMN_BYTES = 8
COLUMNS = 2
BROADCAST = {"default": None, "shuffle": False, "broadcast": True}

Joined = Tuple[List[Figures], List[List[int]]]
"""Figures of the joined frame's partitions; where it was indexed by key, their ranges of keys."""


class Merge(LazyMeasurement):
    """Partitions of both frames in fixed places; each join starts from frames that have no copies yet."""

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._base: Any = None
        self._other: Any = None
        self._connections: Any = None
        self._originals: Dict[str, List[Any]] = {}
        self._expected: Figures = []
        self._spread: List[List[int]] = []
        workers = len(context.workers)
        self.rows = int(params["rows_per_worker"])
        self.base_chunks = int(params["base_chunks"]) or workers
        self.other_chunks = int(params["other_chunks"]) or workers
        self.frac_match = float(params["frac_match"])
        if self.rows < max(self.base_chunks, self.other_chunks):
            raise ValueError(
                f"merge needs at least as many rows per chunk as chunks: rows_per_worker {self.rows}, "
                f"chunks {self.base_chunks} and {self.other_chunks}"
            )

    @property
    def nominal_bytes(self) -> int:
        return (self.base_chunks + self.other_chunks) * self.rows * COLUMNS * COLUMN_BYTES

    @property
    def least_moved_bytes(self) -> int:
        """One row of every matching pair whose two rows lie on different workers (Dask moves rows whole).

        None with explicit comms, which talk past the transfer log.
        """
        if self.backend == explicit_comms.BACKEND:
            return 0
        base = dask_compat.partition_holders(self.context.client, self._base)
        other = dask_compat.partition_holders(self.context.client, self._other)
        pairs = sum(
            count for here, counts in zip(other, self._spread) for there, count in zip(base, counts) if not here & there
        )
        return pairs * COLUMNS * COLUMN_BYTES

    @property
    def talks_past_log(self) -> bool:
        """With explicit comms, whose every worker has a connection to every other one (explicit_comms/comms.py)."""
        return self.backend == explicit_comms.BACKEND

    def setup(self) -> None:
        """Connect the workers for explicit comms; compute what the join must give, in the workers, without joining.

        Raises:
            UnavailableError: explicit comms are asked for, and the image's dask-cuda has none.
        """
        if self.backend == explicit_comms.BACKEND:
            self._connections = explicit_comms.connected(self.context.client)
        expected = functools.partial(
            expected_figures,
            rows=self.rows,
            base_chunks=self.base_chunks,
            other_chunks=self.other_chunks,
            frac_match=self.frac_match,
            scattered=bool(self.params["shuffle"]),
            device=self.context.device,
        )
        parts = self.context.client.gather(self.context.client.map(expected, range(self.other_chunks), pure=False))
        self._expected = added_up([figures for figures, _ in parts])
        self._spread = [spread for _, spread in parts]

    def prepare(self) -> None:
        self._base = self._other = None
        self._round += 1
        generate: Any = base_chunk
        divisions: Tuple[int, ...] = ()
        if self.params["shuffle"]:
            generate, divisions = base_partition, tuple(range(self.base_chunks + 1))
        self._base = self._frame("base", generate, (), self.base_chunks, divisions)
        self._other = self._frame("other", other_chunk, (self.frac_match,), self.other_chunks)
        distributed.wait([self._base, self._other])

    def _frame(
        self, name: str, generate: Any, extra: Tuple[Any, ...], chunks: int, divisions: Tuple[Any, ...] = ()
    ) -> Any:
        device_name = self.context.device
        parts = [(generate, number, self.rows, chunks, *extra, device_name) for number in range(chunks)]
        meta = generate(0, 4, 1, *extra, device_name)
        if self.keeps_originals:  # both frames are the same in all repetitions
            if name not in self._originals:
                self._originals[name] = frames.placed(self.context, f"{self.name}-{name}-original", parts)
            parts = [(copied, original) for original in self._originals[name]]
        return frames.begun(self.context, f"{self.name}-{name}", parts, meta, divisions)

    def lazy(self) -> Any:
        """The join, and the index where one is asked for: that of the joined frame, as in dask-cuda."""
        joined = self._base.merge(
            self._other,
            on=["key"],
            how="inner",
            broadcast=BROADCAST[self.params["join"]],
            **dask_compat.task_shuffle(self._base.merge),
        )
        if self.params["set_index"]:
            return joined.set_index("key", **dask_compat.task_shuffle(joined.set_index))
        return joined

    def once(self) -> Tuple[float, Joined]:
        """Build the graph, persist, wait, as dask-cuda does; figures of the joined frame are taken after the clock."""
        client = self.context.client
        start = time.perf_counter()
        if self.backend == explicit_comms.BACKEND:
            futures = explicit_comms.persist(client, self.lazy)
        else:
            futures = distributed.futures_of(client.persist(self.lazy()))
        distributed.wait(futures)
        device.synchronize_workers(client, self.context.device)
        seconds = time.perf_counter() - start
        figures = functools.partial(joined_figures, device=self.context.device)
        parts = client.gather(client.map(figures, futures, pure=False))
        ranges = client.map(key_range, futures, pure=False) if self.params["set_index"] else []
        return seconds, (parts, client.gather(ranges))

    def check(self, answer: Joined) -> Answer:
        """Rows by formula, sums by looking up; an index makes partitions that are sorted and don't overlap."""
        parts, ranges = answer
        figures = added_up(parts)
        rows = joined_rows(self.rows, self.base_chunks, self.other_chunks, self.frac_match)
        is_ok = figures == self._expected and figures[0] == rows
        details = {"rows": figures[0], "expected_rows": rows, "sums": figures[1:], "expected_sums": self._expected[1:]}
        if self.params["set_index"]:
            apart = are_apart(ranges)
            details["partitions_apart"] = apart
            is_ok = is_ok and apart and len(ranges) == len(parts)
        return judged(is_ok, details)

    def teardown(self) -> None:
        self._base = self._other = self._connections = None
        self._originals = {}
