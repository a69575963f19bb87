"""What is chosen before anybody looks at the data: the margin, the number of a run, the error rates, the looks."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

from gpubench.errors import UsageError

Summary = Literal["mean", "geomean", "median"]


@dataclasses.dataclass(frozen=True)
class Looks:
    """An adaptive campaign: it is looked at while it runs.

    Args:
        maximum: declared maximum of blocks N; pairs beyond it are not used (they are a new campaign).
        ended: no further block will come (budget or wall time is spent), so this look spends all that is left of alpha.
            Legal because the reason for stopping isn't the data.
    """

    maximum: int = 12
    ended: bool = False

    def __post_init__(self) -> None:
        if self.maximum < 5:
            raise UsageError(f"an adaptive campaign of at most {self.maximum} blocks", then="declare at least 5")


@dataclasses.dataclass(frozen=True)
class VerdictSettings:
    """How verdicts are made.

    Args:
        margin: δ as a ratio minus one (0.03 is 3 %); the equivalence region is ±log(1+δ) in logs.
        summary: the number of a run and cell: arithmetic mean (what a job pays), geometric mean or median of its
            samples.
        alpha: family-wise error rate of the test, and error rate of each of the two one-sided tests.
        seed: of the sign flips that are drawn where there are too many to enumerate.
        look: None for a fixed plan, which is looked at once.

    Raises:
        UsageError: a value that no verdict can be made with.
    """

    margin: float = 0.03
    summary: Summary = "mean"
    alpha: float = 0.05
    seed: int = 20260101
    look: Looks | None = None

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1:
            raise UsageError(f"margin {self.margin:g}", then="give a margin between 0 and 1, like 0.03 for 3 %")
        if not 0 < self.alpha < 0.5:
            raise UsageError(f"alpha {self.alpha:g}", then="give an error rate between 0 and 0.5, like 0.05")
        if self.summary not in get_args(Summary):
            raise UsageError(f"no summary '{self.summary}'", then=f"choose one of {', '.join(get_args(Summary))}")
