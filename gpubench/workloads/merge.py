"""Inner join of two frames on an unsorted key: dask-cuda's ``local_cudf_merge``."""

import functools
import time
import uuid
from typing import Any, List, Tuple

import dask.dataframe
import distributed

from gpubench.workloads import dasks, device, merge_data
from gpubench.workloads.base import Answer, Context, Measurement

COLUMN_BYTES = 8
COLUMNS = 2
BROADCAST = {"default": None, "shuffle": False, "broadcast": True}


class Merge(Measurement):
    """One partition of each frame per worker, in fixed places; each join starts from frames that have no copies yet."""

    def __init__(self, context: Context, params: Any) -> None:
        super().__init__(context, params)
        self._token = uuid.uuid4().hex[:8]
        self._round = 0
        self._base: Any = None
        self._other: Any = None
        self._expected: merge_data.Figures = []
        self._spread: List[List[int]] = []

    @property
    def rows(self) -> int:
        """Rows per worker and frame."""
        return int(self.params["rows_per_worker"])

    @property
    def chunks(self) -> int:
        """Partitions per frame: one for each worker."""
        return len(self.context.workers)

    @property
    def nominal_bytes(self) -> int:
        """Rows × item sizes of both frames."""
        return 2 * self.chunks * self.rows * COLUMNS * COLUMN_BYTES

    @property
    def least_moved_bytes(self) -> int:
        """One row of every matching pair whose two rows lie on different workers (Dask moves rows whole)."""
        base = dasks.partition_holders(self.context.client, self._base)
        other = dasks.partition_holders(self.context.client, self._other)
        pairs = sum(
            count for here, counts in zip(other, self._spread) for there, count in zip(base, counts) if not here & there
        )
        return pairs * COLUMNS * COLUMN_BYTES

    def setup(self) -> None:
        """Compute what the join must give, in the workers and without joining.

        Raises:
            ValueError: not even one row per pair of chunks.
        """
        if self.rows < self.chunks:
            raise ValueError(f"merge needs at least as many rows per worker as workers: {self.rows} < {self.chunks}")
        expected = functools.partial(
            merge_data.expected_figures,
            rows=self.rows,
            chunks=self.chunks,
            frac_match=float(self.params["frac_match"]),
            device=self.context.device,
        )
        parts = self.context.client.gather(self.context.client.map(expected, range(self.chunks), pure=False))
        self._expected = merge_data.added_up([figures for figures, _ in parts])
        self._spread = [spread for _, spread in parts]

    def prepare(self) -> None:
        """Generate both frames anew."""
        self.teardown()
        self._round += 1
        divisions = tuple(range(self.chunks + 1))
        self._base = self._frame("base", merge_data.base_partition, (), divisions)
        frac_match = float(self.params["frac_match"])
        self._other = self._frame("other", merge_data.other_chunk, (frac_match,), (None,) * (self.chunks + 1))

    def _frame(self, name: str, generate: Any, extra: Tuple[Any, ...], divisions: Tuple[Any, ...]) -> Any:
        client = self.context.client
        futures = [
            client.submit(
                generate,
                number,
                self.rows,
                self.chunks,
                *extra,
                self.context.device,
                key=f"{name}-{self._token}-{self._round}-{number}",
                workers=[worker],
            )
            for number, worker in enumerate(self.context.workers)
        ]
        meta = generate(0, 4, 1, *extra, self.context.device)
        frame = client.persist(dask.dataframe.from_delayed(futures, meta=meta, divisions=divisions, verify_meta=False))
        distributed.wait(frame)
        return frame

    def once(self) -> Tuple[float, List[merge_data.Figures]]:
        """Build the graph, persist, wait, as dask-cuda does; figures of the joined frame are taken after the clock."""
        client = self.context.client
        start = time.perf_counter()
        joined = self._base.merge(
            self._other,
            on=["key"],
            how="inner",
            broadcast=BROADCAST[self.params["join"]],
            **dasks.task_shuffle(self._base.merge),
        )
        held = client.persist(joined)
        distributed.wait(held)
        device.synchronize_workers(client, self.context.device)
        seconds = time.perf_counter() - start
        figures = functools.partial(merge_data.joined_figures, device=self.context.device)
        return seconds, client.gather(client.map(figures, distributed.futures_of(held), pure=False))

    def check(self, answer: List[merge_data.Figures]) -> Answer:
        """Rows by formula, sums by looking up."""
        found = merge_data.added_up(answer)
        per_pair = merge_data.matches_per_pair(self.rows, self.chunks, float(self.params["frac_match"]))
        rows = self.chunks * self.chunks * per_pair
        is_ok = found == self._expected and found[0] == rows
        details = {"rows": found[0], "expected_rows": rows, "sums": found[1:], "expected_sums": self._expected[1:]}
        return Answer("ok" if is_ok else "wrong", details)

    def teardown(self) -> None:
        """Drop both frames."""
        self._base = self._other = None
