"""Workloads of my own, timed on a Dask cluster of gpubench.

    gpubench measure ./@NAME@.py:Join --set rows=1e6      # one of them, here and now
    gpubench bench --suite ./@NAME@.toml                  # what @NAME@.toml lists, with verdicts

This file runs inside every image that is compared, old ones too: write Python 3.9, and import only what the images
have (dask, distributed, numpy, pandas; on GPUs cudf, dask_cudf, cupy). Only this file is copied into a campaign.
"""

import dask.array
import dask.dataframe
import distributed
import numpy as np
import pandas as pd


def total(client, params):
    """The short form: all of it is timed. The answer is not checked, so its samples are `unchecked`."""
    size = int(params.get("size", 2000))
    chunk = max(1, size // len(client.nthreads()))  # at least one column of chunks for each worker
    # A collection that is returned is computed on the workers, inside the clock.
    return dask.array.ones((size, size), chunks=chunk).sum()


class Join:
    """The long form: only `once` is timed, and every answer is checked. `setup`, `prepare`, `check` may be left out."""

    def setup(self, client, params):
        """Once, before the first repetition. `params` are those of the suite, or of `--set`."""
        self.rows = int(params.get("rows", 200_000))
        self.client = client
        self.workers = sorted(client.nthreads())

    def prepare(self):
        """Before each repetition: new data, which must be in the workers' memory before the clock starts."""
        keys = np.random.default_rng(1).permutation(self.rows)
        self.left = self._spread(pd.DataFrame({"key": keys, "left": 1.0}))
        self.right = self._spread(pd.DataFrame({"key": keys[::-1], "right": 2.0}))

    def _spread(self, frame):
        """Two parts of the frame on each worker. Dask alone may place a small table on one worker."""
        places = 2 * self.workers
        parts = np.array_split(np.arange(self.rows), len(places))
        held = [self.client.scatter(frame.iloc[rows], workers=[place]) for rows, place in zip(parts, places)]
        distributed.wait(held)
        return dask.dataframe.from_delayed(held, meta=frame.iloc[:0])

    def once(self):
        """The timed part. Its result is passed to `check`."""
        return self.left.merge(self.right, on="key", how="inner")

    def check(self, joined):
        """True or False; or raise AssertionError with the reason. A wrong answer fails the run."""
        assert len(joined) == self.rows, f"{len(joined)} rows, not {self.rows}"
        return True
