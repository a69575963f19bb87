"""``((x + 1)[::2, ::2]).sum()``, x normal around 10 with deviation 1: DeepOps' ``sum.py``."""

import math
from typing import Any, Tuple

from gpubench.workloads.arrays import ITEM_BYTES, ArraySum, random_state


def normal_block(device: str, entropy: Tuple[int, ...], shape: Tuple[int, int]) -> Any:
    """Normal(10, 1)."""
    return random_state(device, entropy).normal(10.0, 1.0, shape)


class StridedSum(ArraySum):
    """Hardly moves anything: the workload that shows what a change of the communication library can *not* explain."""

    draw = staticmethod(normal_block)

    @property
    def count(self) -> int:
        """Elements that are added up."""
        return math.ceil(self.size / 2) ** 2

    @property
    def is_settled(self) -> bool:
        """DeepOps times drawing and adding up together; here that is a choice."""
        return not self.params["generate"]

    @property
    def constant(self) -> float:
        """One is added to each element."""
        return float(self.count)

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return (data + 1.0)[::2, ::2].sum()

    def reference(self, data: Any) -> Any:
        """The ones are added to the sum instead of the elements; numbers not kept are drawn again from their seeds."""
        return data[::2, ::2].sum() + float(self.count)

    def moments(self) -> Tuple[float, float]:
        """11 · count, √count."""
        return 11.0 * self.count, math.sqrt(self.count)

    @property
    def least_moved_bytes(self) -> int:
        """One partial sum from each worker with blocks but the one that adds them up; nothing sure if not yet drawn."""
        if self.params["generate"]:
            return 0
        owners = {workers[0] for workers in self.block_holders().values() if len(workers) == 1}
        return ITEM_BYTES * max(0, len(owners) - 1)
