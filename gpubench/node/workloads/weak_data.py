"""Numbers of dask-bench's weak scaling: integers in [0, 100 000), and figures by which they are known again.

All functions run in the workers; ``device`` is ``cpu`` or ``gpu``. A block is drawn from its own entropy and nothing
else, so that whoever checks an answer draws the same numbers once more, whether the timed ones were kept or not.
Sums wrap around in int64 and are compared modulo 2⁶⁴.
"""

from typing import Any, Dict, List, Tuple

from gpubench.node.workloads.base import WRAP, Figures
from gpubench.node.workloads.device import array_module, frame_module
from gpubench.node.workloads.random_blocks import random_state

UPPER = 100_000
"""Numbers are smaller than this."""
COLUMNS = ["col_0", "col_1", "col_2", "col_3", "col_4", "col_5"]
_FACTORS = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1, 0x2545F491)
"""One large odd number per column: what belongs to one column can't stand in another unnoticed."""


def integers_block(device: str, entropy: Tuple[int, ...], shape: Tuple[int, int]) -> Any:
    return random_state(device, entropy).randint(0, UPPER, shape, dtype="int64")


def element(device: str, entropy: Tuple[int, ...], shape: Tuple[int, int], row: int, column: int) -> int:
    return int(integers_block(device, entropy, shape)[row, column])


def _weights(device: str, start: int, count: int) -> Tuple[Any, Any]:
    """Two different weights for each of ``count`` rows or columns from number ``start`` on, int64."""
    place = array_module(device).arange(start, start + count, dtype="int64")
    return 2 * place + 1, place * place + 3


def weight_sums(device: str, side: int) -> Tuple[int, int]:
    return tuple(int(weights.sum()) for weights in _weights(device, 0, side))  # type: ignore[return-value]


def block_figures(block: Any, corner: Tuple[int, int], device: str) -> Figures:
    """Elements, sum, Σ aᵢ·yᵢⱼ·bⱼ and Σ bᵢ·yᵢⱼ·aⱼ of the block whose first element stands at ``corner`` of the array.

    The weighted sums change when anything stands in a wrong place, and say whether it was mirrored.
    """
    rows, columns = (_weights(device, start, count) for start, count in zip(corner, block.shape))
    forms = (int(rows[0] @ (block @ columns[1])), int(rows[1] @ (block @ columns[0])))
    return [int(block.size), int(block.sum()) % WRAP, *(form % WRAP for form in forms)]


def drawn_figures(
    device: str, entropy: Tuple[int, ...], shape: Tuple[int, int], corner: Tuple[int, int]
) -> Tuple[Figures, Figures]:
    """``block_figures`` of a drawn block; and its number, sum and sum of squares, exact up to 9·10⁸ elements."""
    block = integers_block(device, entropy, shape)
    return block_figures(block, corner, device), [int(block.size), int(block.sum()), int((block * block).sum())]


def column_sums(device: str, entropy: Tuple[int, ...], shape: Tuple[int, int]) -> List[List[int]]:
    """Sums and sums of squares of every column of a drawn block, exact."""
    block = integers_block(device, entropy, shape)
    return [block.sum(axis=0).tolist(), (block * block).sum(axis=0).tolist()]


def farthest_from_one(block: Any) -> List[float]:
    """Elements, and the largest distance of one of them from 1 (NaN if one is NaN)."""
    return [int(block.size), float(abs(block - 1.0).max())]


def drawn_frame(device: str, entropy: Tuple[int, ...], shape: Tuple[int, int], start: int) -> Any:
    frames = frame_module(device)
    index = frames.RangeIndex(start, start + shape[0])
    return frames.DataFrame(integers_block(device, entropy, shape), columns=COLUMNS, index=index)


def row_figures(values: Any, index: Any) -> Figures:
    """Rows, and sums of three mixtures of a row's columns with each other and with its place in the frame.

    They don't depend on the rows' order; they change when a row is lost, doubled, or made of two rows' parts.
    """
    mixed = sum(values[:, column] * factor for column, factor in enumerate(_FACTORS))
    sums = (int(figure.sum()) % WRAP for figure in (mixed, mixed * mixed, mixed * (index + 1)))
    return [len(index), *sums]


def drawn_row_figures(device: str, entropy: Tuple[int, ...], shape: Tuple[int, int], start: int, added: int) -> Figures:
    """``row_figures`` of a drawn partition after ``added`` was added to every number."""
    index = array_module(device).arange(start, start + shape[0], dtype="int64")
    return row_figures(integers_block(device, entropy, shape) + added, index)


def drawn_row(device: str, entropy: Tuple[int, ...], shape: Tuple[int, int], row: int) -> List[int]:
    numbers: List[int] = integers_block(device, entropy, shape)[row].tolist()
    return numbers


def drawn_sums(device: str, entropy: Tuple[int, ...], shape: Tuple[int, int]) -> List[List[int]]:
    """Rows, sum and sum of squares of every column of a drawn partition, exact."""
    return [[shape[0], total, squares] for total, squares in zip(*column_sums(device, entropy, shape))]


def frame_figures(frame: Any, device: str) -> Figures:
    """``row_figures`` of a partition, and of its second column: whether it ascends, least and greatest (0 if empty)."""
    xp = array_module(device)
    values = xp.stack([xp.asarray(frame[name]) for name in COLUMNS], axis=1)
    key = values[:, 1]
    ascends = bool((key[1:] >= key[:-1]).all())
    ends = [int(key.min()), int(key.max())] if len(key) else [0, 0]
    return [*row_figures(values, xp.asarray(frame.index)), int(ascends), *ends]


def drawn_groups(device: str, entropy: Tuple[int, ...], shape: Tuple[int, int]) -> Dict[str, List[int]]:
    """Of a drawn partition: the values of its second column, how often each is there, sums of the first and third."""
    xp = array_module(device)
    block = integers_block(device, entropy, shape)
    key = block[:, 1]
    counts = xp.bincount(key, minlength=UPPER)
    keys = xp.nonzero(counts)[0]
    # As float64, exact below 2⁵³.
    sums = [xp.bincount(key, weights=block[:, column], minlength=UPPER)[keys] for column in (0, 2)]
    lists = (keys, counts[keys], *(total.astype("int64") for total in sums))
    return {name: figures.tolist() for name, figures in zip(("key", "count", "col_0", "col_2"), lists)}
