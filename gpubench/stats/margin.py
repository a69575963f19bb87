"""The margin: the difference that doesn't matter, and whether an interval lies within or beyond it."""

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

    @property
    def faster(self) -> float:
        """The faster end of the region as a ratio minus one; the slower end is δ itself."""
        return 1 / (1 + self) - 1

    @property
    def ends(self) -> str:
        """``-2.9 to +3 %``: times are compared as ratios, so the region isn't even in percent."""
        return f"{100 * self.faster:.2g} to +{self.percent}"

    def is_slower(self, low: float) -> bool:
        """Whether an interval of logs that begins at ``low`` lies beyond the region on the slower side."""
        return low > self.log

    def is_faster(self, high: float) -> bool:
        """Whether an interval of logs that ends at ``high`` lies beyond the region on the faster side."""
        return high < -self.log

    def contains(self, low: float, high: float) -> bool:
        """Whether an interval of logs lies within the region, its ends included."""
        return -self.log <= low and high <= self.log

    def is_exceeded(self, word: str, low: float | None, high: float | None) -> bool:
        """Whether an interval (ratios minus one) lies beyond the region on the side of the verdict ``word``."""
        if low is None or high is None:
            return False
        return (word == "regression" and low > self) or (word == "improvement" and high < self.faster)


DEFAULT_MARGIN = Margin(0.03)
