"""The same campaigns through the sample table and ``judge``: the arrays' shortcut must give the identical verdicts."""

from __future__ import annotations

import numpy as np
import polars as pl

from benchmarks.calibration.campaigns import Campaigns, generate
from benchmarks.calibration.noise import Noise, Shape, places
from gpubench.stats.decision import WORDS, Decisions
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.table import comparisons_from_frame
from gpubench.stats.verdict import Verdict, judge

LABELS = "ABCDEFGH"
"""Of variants, the baseline first."""
_STATUS = np.array(["ok", "lost", "failed"])


def sample_table(campaigns: Campaigns, which: int, rng: np.random.Generator) -> pl.DataFrame:
    """One campaign as the table that ``compare`` reads, rows shuffled."""
    times = campaigns.times[which]
    cell, block, variant, rep = (axis.ravel() for axis in np.indices(times.shape))
    status = _STATUS[campaigns.status[which]][cell, block, variant]
    frame = pl.DataFrame(
        {
            "workload": np.char.add("w", np.char.zfill(cell.astype(str), 3)),
            "nodes": np.full(cell.shape, 2),
            "variant": np.array([*LABELS])[variant],
            "block": block + 1,
            "run": np.char.add(np.array([*LABELS])[variant], block.astype(str)),
            "rep": rep,
            "wall_s": np.where(status == "ok", times.ravel(), np.nan),
            "order": places(campaigns.orders)[which][block, variant],
            "status": status,
        }
    )
    return frame[rng.permutation(len(frame))]


def disagreements(seed: int, noise: Noise, shape: Shape) -> int:
    """Cells whose verdict, p-value or interval differs between the table's path and the arrays' (should be 0)."""
    rng, different = np.random.default_rng(seed), 0
    for campaigns in generate(seed, noise, shape):
        fast = campaigns.judged(VerdictSettings())
        for which in range(campaigns.times.shape[0]):
            table, baseline, *candidates = sample_table(campaigns, which, rng), *LABELS[: shape.variants]
            parts = [comparisons_from_frame(table, baseline, candidate) for candidate in candidates]
            cells = zip(*parts, strict=True)  # candidates of a cell beside each other, as in a plan
            verdicts = judge([comparison for cell in cells for comparison in cell], VerdictSettings())
            rows = range(which * campaigns.comparisons, (which + 1) * campaigns.comparisons)
            different += sum(not same_verdict(*pair, fast) for pair in zip(verdicts, rows, strict=True))
    return different


def same_verdict(verdict: Verdict, row: int, fast: Decisions) -> bool:
    """The word is that of the arrays' ``row``, and p-value and interval are the same but for rounding."""
    effect, half_width = fast.estimates.difference.effect[row], fast.estimates.half_width[row]
    expected = [fast.p_holm[row], np.expm1(effect - half_width), np.expm1(effect + half_width)]
    found = [np.nan if value is None else value for value in (verdict.p_holm, verdict.low, verdict.high)]
    same = np.allclose(found, expected, rtol=1e-9, atol=1e-12, equal_nan=True)
    return bool(same) and verdict.verdict == WORDS[fast.word[row]]
