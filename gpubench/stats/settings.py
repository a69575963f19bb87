"""What is chosen before anybody looks at the data: the margin, the number of a run, the error rates."""

import dataclasses
import math
from enum import StrEnum

from gpubench.errors import UsageError


class FailOn(StrEnum):
    """The least verdict for which a command exits with a failure."""

    REGRESSION = "regression"
    INCONCLUSIVE = "inconclusive"


class Margin(float):
    """δ as a ratio minus one (0.03 is 3 %): the difference that does not matter. In logs the region is ±log(1+δ)."""

    __slots__ = ()

    @property
    def log(self) -> float:
        """Half the width of the region in logs."""
        return math.log1p(self)

    @property
    def half(self) -> "Margin":
        """Half of it: the size that a flag asks for."""
        return Margin(self / 2)

    @property
    def percent(self) -> str:
        """``3 %``."""
        return f"{100 * self:g} %"

    def is_exceeded(self, word: str, low: float | None, high: float | None) -> bool:
        """Whether an interval (ratios minus one) lies beyond the margin on the side of the verdict ``word``."""
        if low is None or high is None:
            return False
        return (word == "regression" and low > self) or (word == "improvement" and high < 1 / (1 + self) - 1)


DEFAULT_MARGIN = Margin(0.03)


@dataclasses.dataclass(frozen=True)
class VerdictSettings:
    """How verdicts are made.

    Args:
        margin: any number between 0 and 1; it is a ``Margin`` afterwards.
        alpha: family-wise error rate of the test, and error rate of each of the two one-sided tests.

    Raises:
        UsageError: a value that no verdict can be made with.
    """

    margin: Margin = DEFAULT_MARGIN
    alpha: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1:
            raise UsageError(f"margin {self.margin:g}", then="give a margin between 0 and 1, like 0.03 for 3 %")
        object.__setattr__(self, "margin", Margin(self.margin))
        if not 0 < self.alpha < 0.5:
            raise UsageError(f"alpha {self.alpha:g}", then="give an error rate between 0 and 0.5, like 0.05")
