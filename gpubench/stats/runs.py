"""The numbers of a run and cell: its mean, its spread, its stragglers, how it starts up."""

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

STRAGGLER = 1.5
"""A sample is a straggler when it takes more than this times its run's median."""


@dataclasses.dataclass(frozen=True)
class RunNumbers:
    """What is kept of every run; all arrays have the same shape, one entry per run.

    Args:
        log_mean: log of the arithmetic mean in seconds; what a job pays.
        log_median: log of the median.
        relative_variance: variance of ``log_mean`` by the delta method, var / (reps · mean²); 0 for a single sample.
        reps: timed samples.
        stragglers: samples above 1.5 times the run's median.
        lag1: autocorrelation of the log samples at lag 1 plus 1/reps, so that its expectation is 0 for exchangeable
            samples; 0 below three samples.
        first_excess: log of the first sample over the median of the others; 0 below four samples.
    """

    log_mean: Floats
    log_median: Floats
    relative_variance: Floats
    reps: Floats
    stragglers: Floats
    lag1: Floats
    first_excess: Floats

    def map(self, change: Callable[[Floats], Floats]) -> "RunNumbers":
        """The same numbers, each array changed in the same way."""
        return RunNumbers(**{field.name: change(getattr(self, field.name)) for field in dataclasses.fields(self)})

    @staticmethod
    def zeros(shape: tuple[int, ...]) -> "RunNumbers":
        return RunNumbers(**{field.name: np.zeros(shape) for field in dataclasses.fields(RunNumbers)})


def number_runs(times: Floats) -> RunNumbers:
    """Numbers of runs that have the same count of samples.

    Nothing is trimmed: a straggler that a job pays for is part of its mean.

    Args:
        times: seconds, positive and finite, shape (..., reps), repetitions in order.

    Returns:
        Arrays of shape (...).
    """
    reps = times.shape[-1]
    logs = np.log(times)
    mean, median = times.mean(axis=-1), np.median(times, axis=-1)
    variance = times.var(axis=-1, ddof=1) if reps > 1 else np.zeros_like(mean)
    return RunNumbers(
        log_mean=np.log(mean),
        log_median=np.log(median),
        relative_variance=variance / (reps * mean**2),
        reps=np.full_like(mean, reps),
        stragglers=np.sum(times > STRAGGLER * median[..., None], axis=-1).astype(float),
        lag1=_lag1(logs) if reps >= 3 else np.zeros_like(mean),
        first_excess=logs[..., 0] - np.median(logs[..., 1:], axis=-1) if reps >= 4 else np.zeros_like(mean),
    )


def _lag1(logs: Floats) -> Floats:
    # Under any reordering of the samples the expectation of the lag-1 coefficient is -1/reps; that bias is taken out.
    centred = logs - logs.mean(axis=-1, keepdims=True)
    total = np.sum(centred**2, axis=-1)
    products = np.sum(centred[..., 1:] * centred[..., :-1], axis=-1)
    varies = total > 0
    return np.where(varies, products / np.where(varies, total, 1.0) + 1 / logs.shape[-1], 0.0)
