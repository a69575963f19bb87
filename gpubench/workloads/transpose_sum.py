"""``(x + x.T).sum()``, x uniform on [0, 1): dask-cuda's ``local_cupy -o transpose_sum``."""

import math
from typing import Any, Tuple

from gpubench.workloads.arrays import ITEM_BYTES, ArraySum, uniform


class TransposeSum(ArraySum):
    """Every block off the diagonal meets its mirror image, so up to half of the array must move."""

    draw = staticmethod(uniform)

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return (data + data.T).sum()

    def reference(self, data: Any) -> Any:
        """Without the transpose, so without traffic."""
        return 2.0 * data.sum()

    def moments(self) -> Tuple[float, float]:
        """size², and the deviation 2 · √(size² / 12) of twice a sum of size² uniform numbers."""
        return float(self.size**2), 2.0 * self.size * math.sqrt(1.0 / 12.0)

    @property
    def least_moved_bytes(self) -> int:
        """One of x[i, j] and x[j, i] (they are equally large) for every such pair that no worker holds together."""
        rows, columns = self._data.chunks
        holders = self.block_holders()
        total = 0
        for i in range(len(rows)):
            for j in range(i):
                here, there = (holders[str((self._data.name, *place))] for place in ((i, j), (j, i)))
                if not set(here) & set(there):
                    total += int(rows[i] * columns[j]) * ITEM_BYTES
        return total
