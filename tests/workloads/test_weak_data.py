"""The figures by which weak scaling's answers are checked notice what they promise to notice."""

import math

import numpy as np
import pytest

from gpubench.node.workloads import weak_data, weak_task

SHAPE = (30, 6)


def block(*entropy: int) -> np.ndarray:
    numbers: np.ndarray = weak_data.integers_block("cpu", entropy, SHAPE)
    return numbers


def test_numbers_are_the_originals_and_depend_on_every_part_of_the_entropy() -> None:
    numbers = weak_data.integers_block("cpu", (1, 2, 3), (300, 300))
    assert (numbers.dtype, int(numbers.min()) >= 0, int(numbers.max()) < 100_000) == (np.int64, True, True)
    assert (block(1, 2, 3) == block(1, 2, 3)).all()
    assert not any((block(1, 2, 3) == block(*other)).all() for other in ((2, 2, 3), (1, 3, 3), (1, 2, 4)))


def test_a_blocks_figures_change_when_anything_stands_elsewhere() -> None:
    square = weak_data.integers_block("cpu", (1,), (40, 40))
    right = weak_data.block_figures(square, (40, 80), "cpu")
    swapped = square.copy()
    swapped[[3, 4]] = square[[4, 3]]
    for wrong in (square.T, swapped, square[::-1]):
        found = weak_data.block_figures(wrong, (40, 80), "cpu")
        assert found[:2] == right[:2]
        assert found != right
    assert weak_data.block_figures(square, (80, 40), "cpu") != right
    assert weak_data.block_figures(square.T, (80, 40), "cpu") == [right[0], right[1], right[3], right[2]]


def test_rows_figures_ignore_their_order_and_notice_lost_doubled_and_mixed_rows() -> None:
    index = np.arange(SHAPE[0])
    rows = block(1)
    right = weak_data.row_figures(rows, index)
    order = np.random.default_rng(0).permutation(SHAPE[0])
    assert weak_data.row_figures(rows[order], index[order]) == right
    mixed, exchanged = rows.copy(), rows.copy()
    mixed[[0, 1], 2] = rows[[1, 0], 2]
    exchanged[:, [2, 3]] = rows[:, [3, 2]]
    assert weak_data.row_figures(rows[1:], index[1:]) != right
    assert weak_data.row_figures(rows[[0, 0, *range(2, 30)]], index[[0, 0, *range(2, 30)]]) != right
    for wrong in (mixed, exchanged, rows[order]):
        assert weak_data.row_figures(wrong, index) != right


def test_figures_that_agree_on_unlikely_numbers_are_wrong_all_the_same() -> None:
    count = 1_000_000
    assert weak_task.exactly_and_likely([1], [1], count, int(49_999.5 * count)).status == "ok"
    assert weak_task.exactly_and_likely([1], [1], count, 50_200 * count).status == "wrong"
    assert weak_task.exactly_and_likely([1], [2], count, int(49_999.5 * count)).status == "wrong"


def test_deviations_from_exact_sums_are_numpys() -> None:
    numbers = block(5).ravel()
    sums = (len(numbers), int(numbers.sum()), int((numbers**2).sum()))
    assert weak_task.deviation(*sums, sample=False) == pytest.approx(numbers.std(), rel=1e-12)
    assert weak_task.deviation(*sums, sample=True) == pytest.approx(numbers.std(ddof=1), rel=1e-12)


@pytest.mark.parametrize("found", [[], [1.0, math.nan], [1.0, 2.0 + 1e-8], [1.0], [1.0, 2.0, 2.0]])
def test_numbers_too_far_too_few_or_none_at_all_are_not_close(found: list[float]) -> None:
    assert weak_task.close([1.0, 2.0], [1.0, 2.0]).status == "ok"
    assert weak_task.close(found, [1.0, 2.0]).status == "wrong"
