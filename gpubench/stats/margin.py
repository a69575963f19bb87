"""The margin: the difference that doesn't matter."""

import math


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
