"""What is chosen before anybody looks at the data: margin, error rates, and which verdict is a failure."""

import dataclasses
from enum import StrEnum

from gpubench.errors import UsageError
from gpubench.stats.margin import DEFAULT_MARGIN, Margin


class FailOn(StrEnum):
    """The least verdict for which a command exits with a failure."""

    REGRESSION = "regression"
    INCONCLUSIVE = "inconclusive"


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
            raise UsageError(f"margin {100 * self.margin:g} %", then="give one above 0 % and below 100 %, like 3%")
        object.__setattr__(self, "margin", Margin(self.margin))
        if not 0 < self.alpha < 0.5:
            raise UsageError(f"alpha {self.alpha:g}", then="give an error rate between 0 and 0.5, like 0.05")
