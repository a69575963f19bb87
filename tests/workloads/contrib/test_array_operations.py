"""dask-cuda's array operations: right answers pass, and every way of being wrong is noticed."""

import runpy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpubench.node.workloads.base import WorkloadContext
from gpubench.resources.own_workloads import own_workloads
from gpubench.resources.profiles import load_suite
from tests.workloads.contrib.conftest import CONTRIB, Family
from tests.workloads.running import Answers, created, measured_rightly

pytestmark = pytest.mark.system

FILE = "array_operations/array_operations.py"
ANY = "Dot"

SQUARE = {"size": 50, "chunk": 20}
COLUMN = {"size": 300, "chunk": 70}
GATHER = COLUMN | {"second_size": 90}
TALL = {"size": 150, "second_size": 12, "chunk": 40}
FILTER = SQUARE | {"kernel": 3}
WORKLOADS = [
    ("Dot", SQUARE),
    ("Dot", {"size": 41, "chunk": 41}),
    ("Svd", TALL),
    ("Svd", {"size": 30, "second_size": 12, "chunk": 8}),
    ("Fft", SQUARE),
    ("Total", SQUARE),
    ("Mean", SQUARE),
    ("Slice", SQUARE),
    ("Slice", {"size": 5, "chunk": 1}),
    ("ColSum", COLUMN),
    ("ColMask", COLUMN),
    ("ColMask", {"size": 5, "chunk": 1}),
    ("ColGather", GATHER),
    ("ColGather", {"size": 90, "second_size": 500, "chunk": 40}),
    ("MapOverlap", FILTER),
    ("MapOverlap", SQUARE | {"kernel": 0}),
]
STAYS = {"Fft", "Slice", "ColSum", "ColMask"}


@pytest.mark.parametrize(("name", "params"), WORKLOADS, ids=str)
def test_an_array_operation_answers_rightly_and_moves_what_it_must(
    cluster: WorkloadContext, family: Family, name: str, params: dict[str, Any]
) -> None:
    is_whole = params["size"] == params["chunk"]
    moves = name not in STAYS and not is_whole and params.get("kernel") != 0
    measured_rightly(cluster, family(name), params, moves=moves)


def one_element(number: int, factor: float) -> Callable[[list[Any]], list[Any]]:
    """Result ``number`` with one element of one block multiplied by ``factor``."""

    def change(block: Any, block_info: Any = None) -> Any:
        block = np.array(block)  # a sum's block is no array, and a copy of it can't be changed
        if block.size and all(place == 0 for place in block_info[0]["chunk-location"]):
            block.flat[block.size // 2] *= factor
        return block

    def falsify(results: list[Any]) -> list[Any]:
        changed = results[number].map_blocks(change, dtype=results[number].dtype)
        return [*results[:number], changed, *results[number + 1 :]]

    return falsify


def turned(results: list[Any]) -> list[Any]:
    """The right numbers in another order inside of every block."""
    return [result.map_blocks(lambda block: block[::-1].copy(), dtype=result.dtype) for result in results]


FALSIFIED: list[tuple[str, dict[str, Any], Callable[[list[Any]], list[Any]]]] = [
    ("Dot", SQUARE, one_element(0, 1 + 1e-4)),
    ("Dot", SQUARE, turned),
    ("Svd", TALL, one_element(0, 1.001)),
    ("Svd", TALL, one_element(1, 1.001)),
    ("Svd", TALL, one_element(2, 1.001)),
    ("Svd", TALL, lambda usv: [2.0 * usv[0], usv[1] / 2.0, usv[2]]),
    ("Svd", TALL, lambda usv: [usv[0], 2.0 * usv[1], usv[2] / 2.0]),
    ("Svd", TALL, lambda usv: [usv[0][:, ::-1], usv[1][::-1], usv[2][::-1]]),
    ("Fft", SQUARE, one_element(0, 1.001)),
    ("Fft", SQUARE, turned),
    ("Fft", SQUARE, lambda coefficients: [coefficients[0].conj()]),
    ("Total", SQUARE, one_element(0, 1 + 1e-8)),
    ("Mean", SQUARE, one_element(0, 1 + 1e-8)),
    ("Slice", SQUARE, one_element(0, 1 + 1e-4)),
    ("Slice", SQUARE, turned),
    ("Slice", SQUARE, lambda rows: [rows[0][:-1]]),
    ("ColSum", COLUMN, one_element(0, 1 + 1e-4)),
    ("ColSum", COLUMN, turned),
    ("ColSum", COLUMN, lambda sums: [sums[0][:-1]]),
    ("ColMask", COLUMN, one_element(0, 1 + 1e-4)),
    ("ColMask", COLUMN, turned),
    ("ColMask", COLUMN, lambda kept: [kept[0].map_blocks(lambda block: block[1:], dtype=float)]),
    ("ColGather", GATHER, one_element(0, 1 + 1e-15)),
    ("ColGather", GATHER, turned),
    ("ColGather", GATHER, lambda found: [found[0][:-1]]),
    ("MapOverlap", FILTER, one_element(0, 1 + 1e-4)),
    ("MapOverlap", FILTER, turned),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "params", "falsify"), FALSIFIED, ids=[f"{i}-{x[0]}" for i, x in enumerate(FALSIFIED)])
def test_a_falsified_array_is_called_wrong(
    answers: Answers, family: Family, name: str, params: dict[str, Any], falsify: Callable[[Any], Any]
) -> None:
    answers.called_wrong(family(name), params, falsify)


@pytest.mark.long
@pytest.mark.parametrize("name", ["Dot", "Fft", "Total", "Slice", "MapOverlap"])
def test_a_result_that_is_no_number_is_wrong_and_its_figures_are_json(
    cluster: WorkloadContext, family: Family, name: str
) -> None:
    measurement = created(cluster, family(name), SQUARE)
    try:
        measurement.prepare()
        answer = measurement.check([result * np.nan for result in measurement.once()[1]])
    finally:
        measurement.teardown()
    assert answer.status == "wrong"
    assert "off_by" not in answer.details or answer.details["off_by"] is None


def test_blocks_lie_in_the_same_places_in_every_repetition(cluster: WorkloadContext, family: Family) -> None:
    measurement: Any = created(cluster, family("Dot"), SQUARE)
    try:
        seen = []
        for _ in range(2):
            measurement.prepare()
            seen.append([measurement.holders(array) for array in measurement.arrays])
        assert seen[0] == seen[1]
        assert set(measurement.owners(measurement.arrays[0])) == set(cluster.workers)
    finally:
        measurement.teardown()


@pytest.mark.parametrize("reach", [0, 1, 4])
def test_the_mean_filter_is_the_mean_over_a_window_with_mirrored_edges(reach: int) -> None:
    mean_filter = runpy.run_path(str(CONTRIB / FILE))["mean_filter"]
    values = np.random.RandomState(1).random_sample((9, 6))
    padded = np.pad(values, reach, mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2 * reach + 1, 2 * reach + 1))
    np.testing.assert_allclose(mean_filter(values, reach, "cpu"), windows.mean(axis=(2, 3)))


def test_a_wide_matrix_for_the_svd_is_refused(cluster: WorkloadContext, family: Family) -> None:
    measurement = created(cluster, family("Svd"), {"size": 10, "second_size": 11, "chunk": 5})
    with pytest.raises(ValueError, match="at least as many rows as columns: 10 < 11"):
        measurement.setup()


def test_the_suite_measures_every_operation() -> None:
    suite, source = load_suite(str(CONTRIB / "array_operations/array-operations.toml"))
    specs = suite.resolve(source, reps=None, timeout_s=60.0, own=own_workloads(suite, source.name))
    assert {spec.name.partition(":")[2] for spec in specs} == {name for name, _ in WORKLOADS}
