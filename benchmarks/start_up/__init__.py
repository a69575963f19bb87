"""From the start of a job to its first sample: ours, bare Dask, and the sleep-based sequence of prior scripts."""
