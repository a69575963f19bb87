"""The generator is dask-cuda's, and the expected figures are those of a real join."""

import numpy as np
import pandas as pd
import pytest

from gpubench.node.workloads import merge
from gpubench.node.workloads.base import added_up

SHAPES = [(1000, 1, 0.3), (1000, 2, 0.3), (1000, 3, 0.6), (999, 4, 1.0), (64, 8, 0.01)]


def base(rows: int, chunks: int) -> list[pd.DataFrame]:
    return [merge.base_partition(number, rows, chunks, "cpu") for number in range(chunks)]


def other(rows: int, chunks: int, frac_match: float) -> list[pd.DataFrame]:
    return [merge.other_chunk(number, rows, chunks, frac_match, "cpu") for number in range(chunks)]


def join(left: pd.DataFrame, right: pd.DataFrame) -> merge.Figures:
    return merge.joined_figures(left.merge(right, on=["key"]), "cpu")


def looked_up(
    number: int, rows: int, chunks: tuple[int, int], frac_match: float, *, scattered: bool = True
) -> tuple[merge.Figures, list[int]]:
    return merge.expected_figures(
        number,
        rows=rows,
        base_chunks=chunks[0],
        other_chunks=chunks[1],
        frac_match=frac_match,
        scattered=scattered,
        device="cpu",
    )


def expected(rows: int, chunks: int, frac_match: float) -> merge.Figures:
    parts = [looked_up(number, rows, (chunks, chunks), frac_match) for number in range(chunks)]
    return added_up([figures for figures, _ in parts])


@pytest.mark.parametrize(("rows", "chunks", "frac_match"), SHAPES)
def test_base_holds_every_key_once_scattered_evenly_over_partitions(rows: int, chunks: int, frac_match: float) -> None:
    parts = base(rows, chunks)
    assert sorted(pd.concat(parts)["key"]) == list(range(rows * chunks))
    for number, part in enumerate(parts):
        assert set(part.index) == {number}
        assert abs(len(part) - rows) <= chunks * chunks
        per_chunk = np.bincount(part["key"] // rows, minlength=chunks)
        assert per_chunk.min() > 0
        assert [str(kind) for kind in part.dtypes] == ["int64", "int64"]


@pytest.mark.parametrize(("rows", "chunks", "frac_match"), SHAPES)
def test_other_takes_the_same_share_of_keys_from_each_base_chunk(rows: int, chunks: int, frac_match: float) -> None:
    per_pair = merge.matches_per_pair(rows, chunks, frac_match)
    assert per_pair == max(1, int((rows // chunks) * frac_match))
    frames = other(rows, chunks, frac_match)
    keys = pd.concat(frames)["key"]
    assert keys.is_unique
    for frame in frames:
        assert len(frame) == rows
        assert sorted(frame["payload"]) == list(range(rows))
        matching = frame["key"][frame["key"] < rows * chunks]
        assert list(np.bincount(matching // rows, minlength=chunks)) == [per_pair] * chunks


def test_the_payload_of_a_key_is_what_numpys_global_generator_gives_with_the_published_seed() -> None:
    np.random.seed(2**32 - 1)
    partitions = np.random.permutation(np.repeat(np.arange(2), 500))
    payload = np.random.permutation(np.arange(1000))
    whole = pd.concat(base(1000, 2)).set_index("key")["payload"]
    assert list(whole.loc[np.arange(1000)]) == list(payload)
    assert sorted(base(1000, 2)[1]["key"]) == sorted([*np.flatnonzero(partitions), *1000 + np.flatnonzero(partitions)])


@pytest.mark.parametrize("scattered", [True, False])
@pytest.mark.parametrize(
    ("rows", "base_chunks", "other_chunks", "frac_match"),
    [(1000, 2, 3, 0.3), (1000, 3, 2, 0.3), (999, 1, 4, 0.6), (999, 7, 2, 0.6), (100, 4, 1, 1.0), (64, 5, 3, 0.01)],
)
def test_with_other_numbers_of_chunks_rows_spread_and_figures_are_still_those_of_a_real_join(
    rows: int, base_chunks: int, other_chunks: int, frac_match: float, scattered: bool
) -> None:
    generate = merge.base_partition if scattered else merge.base_chunk
    left = [generate(number, rows, base_chunks, "cpu") for number in range(base_chunks)]
    right = other(rows, other_chunks, frac_match)
    figures = join(pd.concat(left), pd.concat(right))
    assert figures[0] == merge.joined_rows(rows, base_chunks, other_chunks, frac_match)
    parts = []
    for number, chunk in enumerate(right):
        part, spread = looked_up(number, rows, (base_chunks, other_chunks), frac_match, scattered=scattered)
        assert spread == [len(one.merge(chunk, on="key")) for one in left]
        parts.append(part)
    assert added_up(parts) == figures


def test_unscattered_chunks_hold_the_same_rows_as_scattered_partitions() -> None:
    scattered = pd.concat(base(1000, 3)).sort_values("key").reset_index(drop=True)
    chunks = pd.concat([merge.base_chunk(number, 1000, 3, "cpu") for number in range(3)], ignore_index=True)
    pd.testing.assert_frame_equal(chunks, scattered)


@pytest.mark.parametrize(
    ("ranges", "apart"),
    [
        ([[0, 3, 1], [], [4, 4, 1]], True),
        ([[4, 9, 1], [0, 3, 1]], True),
        ([[0, 4, 1], [4, 9, 1]], False),
        ([[0, 3, 0]], False),
    ],
)
def test_sorted_partitions_are_apart_when_none_reaches_into_another(ranges: list[list[int]], apart: bool) -> None:
    assert merge.are_apart(ranges) == apart


def test_rows_lost_doubled_or_paired_wrongly_change_the_figures() -> None:
    left, right = pd.concat(base(1000, 2)), pd.concat(other(1000, 2, 0.3))
    joined = left.merge(right, on=["key"])
    right_figures = expected(1000, 2, 0.3)
    swapped = joined.copy()
    swapped.loc[[0, 1], "payload_y"] = joined.loc[[1, 0], "payload_y"].to_numpy()
    for wrong in (joined.iloc[1:], pd.concat([joined, joined.iloc[:1]]), swapped):
        assert merge.joined_figures(wrong, "cpu") != right_figures


def test_a_copy_is_the_same_frame_in_memory_of_its_own() -> None:
    original = merge.base_partition(0, 1000, 2, "cpu")
    copy = merge.copied(original)
    pd.testing.assert_frame_equal(copy, original)
    copy["payload"] = 0
    copy.loc[0, "key"] = -1
    pd.testing.assert_frame_equal(original, merge.base_partition(0, 1000, 2, "cpu"))
