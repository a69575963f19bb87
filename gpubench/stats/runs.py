"""What verdicts are made from: runs with their samples, and the comparisons that were planned; the numbers of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpubench.stats.settings import Summary

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
        log_geomean: mean of the logs.
        log_median: log of the median.
        relative_variance: variance of ``log_mean`` by the delta method, var / (reps · mean²); 0 for a single sample.
        reps: timed samples.
        stragglers: samples above 1.5 times the run's median.
        lag1: autocorrelation of the log samples at lag 1 plus 1/reps, so that its expectation is 0 for exchangeable
            samples; 0 below three samples.
        first_excess: log of the first sample over the median of the others; 0 below four samples.
    """

    log_mean: Floats
    log_geomean: Floats
    log_median: Floats
    relative_variance: Floats
    reps: Floats
    stragglers: Floats
    lag1: Floats
    first_excess: Floats

    def summary(self, name: Summary) -> Floats:
        """The number of each run under the summary that was chosen before looking."""
        return {"mean": self.log_mean, "geomean": self.log_geomean, "median": self.log_median}[name]

    def map(self, change: Callable[[Floats], Floats]) -> RunNumbers:
        """The same numbers, each array changed in the same way."""
        return RunNumbers(**{field.name: change(getattr(self, field.name)) for field in dataclasses.fields(self)})

    @staticmethod
    def zeros(shape: tuple[int, ...]) -> RunNumbers:
        """Numbers to be filled in."""
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
        log_geomean=logs.mean(axis=-1),
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


Status = Literal["ok", "failed", "skipped", "lost"]


@dataclasses.dataclass(frozen=True, slots=True)
class RunSamples:
    """One workload in one run: one variant in one block.

    Args:
        block: number of the block; ascending numbers are ascending in time.
        order: place of the variant in its block from 0, None where unknown.
        started_at: POSIX seconds, None where unknown.
        wall_s: timed samples in seconds, in the order of their repetitions, warm-up left out; empty unless ``ok``.
            Of another metric (``settings.Metric``) its figures, in its unit.
        status: how the workload ended in this run.
        job: name of the allocation, empty where unknown.
    """

    run: str
    block: int
    variant: str
    order: int | None
    started_at: float | None
    wall_s: tuple[float, ...]
    status: Status
    job: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ComparisonInput:
    """One member of the family: a cell of the candidate against the same cell of the baseline.

    Args:
        key: what identifies the cell (workload, nodes, ...). Cells with the same ``nodes`` and block share sign flips.
        runs: the runs of both variants in this cell, in any order; runs of other variants are ignored.
        planned_blocks: how many blocks the plan holds for this cell.
        frozen_at: for a cell that an earlier look of an adaptive campaign has decided: the last block that counts.
            Without it, the end of a campaign would spend what is left of alpha on cells that had stopped already.
        skipped: why none of its blocks was run: planned so, by a known issue.
        oversubscribed: in some of its runs more processes polled on a machine than it has cores.
        unchecked: nobody checked the answers of some of its samples.
        changed: what else changed with the variant though nobody asked for it (``kernel``: ``6.1.0 → 6.2.0``).
    """

    key: Mapping[str, object]
    baseline: str
    candidate: str
    runs: Sequence[RunSamples]
    planned_blocks: int
    frozen_at: int | None = None
    changed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    skipped: str = ""
    oversubscribed: bool = False
    unchecked: bool = False
