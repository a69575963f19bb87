"""Noise models: how times scatter on a cluster, from campaigns down to single repetitions."""

from __future__ import annotations

import dataclasses
import zlib

import numpy as np
import numpy.typing as npt
import scipy

from gpubench.plan.block_design import campaign_orders

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


PLACE = (2, 1)
"""Nodes and workers per node of all campaigns: a plan draws its orders by seed and place."""


@dataclasses.dataclass(frozen=True)
class Noise:
    """Relative standard deviations and the rest of a model.

    Args:
        job: of a block; all variants share it.
        restart: of a run; nothing takes it out.
        iteration: of a sample.
        drift: slow-down over the whole campaign, linear in time.
        tail: share of samples that are stragglers.
        factor: how much longer a straggler takes.
        autoregression: coefficient of an AR(1) over the samples in the order in which they were taken.
        autoregressive_sd: its marginal standard deviation.
        lost: share of runs lost or failed, half and half, at random.
        lost_when_slow: share of runs of average speed lost or failed; e times more per standard deviation of slowness.
        late: after one run in ten comes a pause of this share of the campaign, while the drift goes on.
        late_when_slow: after a slow run comes a pause, up to this share of the campaign, while the drift goes on.
    """

    job: float = 0.0
    restart: float = 0.0
    iteration: float = 0.01
    drift: float = 0.0
    tail: float = 0.0
    factor: float = 2.0
    autoregression: float = 0.0
    autoregressive_sd: float = 0.0
    lost: float = 0.0
    lost_when_slow: float = 0.0
    late: float = 0.0
    late_when_slow: float = 0.0


MODELS = {
    "iid": Noise(),
    "job 2 %": Noise(job=0.02),
    "restart 0.4 %": Noise(restart=0.004),
    "restart 0.8 %": Noise(restart=0.008),
    "restart 1.5 %": Noise(restart=0.015),
    "restart 2 %": Noise(restart=0.02),
    "drift 5 %": Noise(drift=0.05),
    "tail 5 % x2": Noise(tail=0.05),
    "AR(1) 0.8": Noise(iteration=0.0, autoregression=0.8, autoregressive_sd=0.015),
    "all together": Noise(job=0.02, restart=0.008, drift=0.05, tail=0.01, autoregression=0.8, autoregressive_sd=0.01),
    "5 % lost at random": Noise(job=0.02, restart=0.008, lost=0.05),
    "lost when slow": Noise(job=0.02, restart=0.008, lost_when_slow=0.06),
    "late at random": Noise(job=0.02, restart=0.008, drift=0.05, late=0.1),
    "late when slow": Noise(job=0.02, restart=0.008, drift=0.05, late_when_slow=0.1),
}


@dataclasses.dataclass(frozen=True)
class Shape:
    """Size of a simulation: so many campaigns of so many cells, blocks, repetitions and variants."""

    campaigns: int
    cells: int
    blocks: int
    reps: int = 6
    variants: int = 2


def source(seed: int, noise: Noise, shape: Shape) -> np.random.Generator:
    """Randomness of one figure: the same again for the same seed, and independent of every other figure's."""
    figure = zlib.crc32(repr((noise, shape)).encode())
    return np.random.default_rng([seed, figure])


def planned_orders(seeds: Ints, shape: Shape) -> Ints:
    """The variant that runs at each place of each block, as campaigns of these seeds are planned.

    Args:
        seeds: one per campaign.

    Returns:
        Shape (campaigns, blocks, variants); 0 is the baseline.
    """
    return np.array([campaign_orders(seed, PLACE, shape.variants, shape.blocks) for seed in seeds.tolist()])


def simulate(rng: np.random.Generator, noise: Noise, shape: Shape, orders: Ints) -> Floats:
    """Seconds of every sample without any effect, shape (campaigns, cells, blocks, variants, reps).

    Args:
        rng: source of chance.
        noise: the model.
        shape: how many.
        orders: as ``planned_orders`` gives them.
    """
    runs = (shape.campaigns, shape.cells, shape.blocks, shape.variants)
    restart = noise.restart * rng.standard_normal((*runs, 1))
    logs = restart + noise.job * rng.standard_normal((shape.campaigns, 1, shape.blocks, 1, 1))
    logs = logs + noise.iteration * rng.standard_normal((*runs, shape.reps))
    if noise.drift:
        logs += noise.drift * _clock(rng, noise, shape, orders, restart)
    if noise.autoregression:
        logs += _autoregressive(rng, noise, shape, orders)
    times: Floats = np.exp(logs)
    if noise.tail:
        times *= np.where(rng.random(times.shape) < noise.tail, noise.factor, 1.0)
    return times


def _clock(rng: np.random.Generator, noise: Noise, shape: Shape, orders: Ints, restart: Floats) -> Floats:
    """Time of every sample as a share of the campaign."""
    runs = shape.blocks * shape.variants
    run = shape.variants * np.arange(shape.blocks)[None, :, None] + places(orders)
    within = (np.arange(shape.cells)[:, None] + np.arange(shape.reps)[None, :] / shape.reps) / shape.cells
    time = run[:, None, :, :, None] + within[None, :, None, None, :]
    if noise.late or noise.late_when_slow:
        pause = np.take_along_axis(runs * _pause(rng, noise, restart), orders, axis=2)
        # A pause moves everything after its run: the later runs of the block, and all later blocks.
        before = np.cumsum(pause.reshape(shape.campaigns, -1), axis=1).reshape(pause.shape) - pause
        time = time + np.take_along_axis(before, places(orders), axis=2)[:, None, :, :, None]
    return time / runs


def places(orders: Ints) -> Ints:
    """The place of each variant in each block, from the variant at each place."""
    return np.argsort(orders, axis=2)


def _pause(rng: np.random.Generator, noise: Noise, restart: Floats) -> Floats:
    """Pause after each run as a share of the campaign, shape (campaigns, blocks, variants)."""
    by_chance = np.where(rng.random(restart[:, 0, :, :, 0].shape) < 0.1, noise.late, 0.0)
    slowness = restart[..., 0].mean(axis=1) / noise.restart
    pause: Floats = by_chance + noise.late_when_slow * np.clip(slowness, 0, 1)
    return pause


def _autoregressive(rng: np.random.Generator, noise: Noise, shape: Shape, orders: Ints) -> Floats:
    chain = rng.standard_normal((shape.campaigns, shape.blocks * shape.variants * shape.cells * shape.reps))
    chain *= noise.autoregressive_sd * np.sqrt(1 - noise.autoregression**2)
    series = scipy.signal.lfilter([1.0], [1.0, -noise.autoregression], chain, axis=1)
    in_order = series.reshape(shape.campaigns, shape.blocks, shape.variants, shape.cells, shape.reps)
    by_variant = np.take_along_axis(in_order, places(orders)[..., None, None], axis=2)
    return np.moveaxis(by_variant, 3, 1)
