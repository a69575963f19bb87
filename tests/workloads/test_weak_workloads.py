"""dask-bench's tasks on a real cluster: right in both modes, and each part of each oracle can fail."""

from collections.abc import Callable
from typing import Any

import pytest

from gpubench.node.workloads.base import WorkloadContext
from gpubench.node.workloads.catalogue import CATALOGUE, Shape
from gpubench.node.workloads.catalogue.weak import WORKLOADS, partition_starts, square
from tests.workloads.running import Answers, created, run

SIZES = {"weak-array": {"problem_size": 230}, "weak-frame": {"problem_size": 60}}
MODES = [
    (one.name, mode) for one in WORKLOADS for mode in (("as-published", "persisted") if "mode" in one.params else ("",))
]
MOVES = {
    "weak-array-std",
    "weak-array-std-axis",
    "weak-array-transpose",
    "weak-frame-std",
    "weak-frame-series-std",
    "weak-frame-groupby-mean",
    "weak-frame-groupby-means",
}


def params(name: str, **more: Any) -> dict[str, Any]:
    return SIZES[name[:10]] | more


@pytest.mark.integration
@pytest.mark.parametrize(("name", "mode"), MODES)
def test_a_task_answers_rightly_in_its_modes_and_what_must_move_is_seen(
    cluster: WorkloadContext, name: str, mode: str
) -> None:
    measurement = created(cluster, name, params(name, mode=mode) if mode else params(name))
    result, lines = run(measurement, name=name, reps=1, warmup=0)
    assert (result.status, result.reason) == ("ok", "")
    assert [line["answer"] for line in lines] == ["ok"]
    assert result.seen_bytes >= result.least_moved_bytes
    assert (result.least_moved_bytes > 0) >= (name in MOVES and mode == "persisted")
    assert result.keys_left == 0


def bumped(part: int, figure: int) -> Callable[[Any], Any]:
    """Figures of the parts, one of them larger by one."""

    def change(parts: Any) -> Any:
        changed = [list(figures) for figures in parts]
        changed[part][figure] += 1
        return changed

    return change


FALSIFIED: dict[str, list[Callable[[Any], Any]]] = {
    "weak-array-create": [bumped(0, 0), bumped(1, 3)],
    "weak-array-blockwise": [bumped(0, 1), bumped(3, 2)],
    "weak-array-access": [lambda number: number + 1],
    "weak-array-std": [lambda deviation: deviation * (1 + 1e-8), lambda _deviation: float("nan")],
    "weak-array-std-axis": [lambda columns: [*columns[:-1], columns[-1] * (1 + 1e-8)], lambda columns: columns[1:]],
    "weak-array-elementwise": [
        lambda parts: [[parts[0][0], 1e-11], *parts[1:]],
        lambda parts: [[parts[0][0], float("nan")], *parts[1:]],
        bumped(0, 0),
    ],
    "weak-array-transpose": [bumped(2, 1), bumped(1, 3)],
    "weak-frame-create": [bumped(0, 0), bumped(1, 3)],
    "weak-frame-blockwise": [bumped(3, 1)],
    "weak-frame-access": [lambda row: [*row[:-1], row[-1] + 1], lambda row: [*row, *row]],
    "weak-frame-std": [lambda columns: [*columns[:-1], columns[-1] * (1 + 1e-8)]],
    "weak-frame-series-std": [lambda columns: [columns[0] * (1 + 1e-8)]],
    "weak-frame-groupby-mean": [
        lambda groups: [groups[0], [groups[1][0] + 0.5, *groups[1][1:]]],
        lambda groups: [column[1:] for column in groups],
    ],
    "weak-frame-groupby-means": [
        lambda groups: [groups[0], groups[1], [*groups[2][:-1], groups[2][-1] + 0.5]],
        lambda groups: [groups[0], groups[2], groups[1]],
    ],
    "weak-frame-groupby-apply": [lambda seen: ([*seen[0][:3], seen[0][3] + 1], seen[1]), lambda seen: (seen[0], False)],
    "weak-frame-sort": [
        bumped(0, 2),
        lambda parts: [parts[-1], *parts[1:-1], parts[0]],
        lambda parts: [[*figures[:4], 0, *figures[5:]] for figures in parts],
    ],
}


def test_every_task_has_answers_that_are_wrong() -> None:
    assert set(FALSIFIED) == {one.name for one in WORKLOADS}


@pytest.mark.integration
@pytest.mark.parametrize("name", FALSIFIED)
def test_a_falsified_answer_is_called_wrong(answers: Answers, name: str) -> None:
    for falsify in FALSIFIED[name]:
        answers.called_wrong(name, params(name), falsify)


@pytest.mark.integration
def test_every_repetition_has_other_numbers(cluster: WorkloadContext) -> None:
    measurement = created(cluster, "weak-array-access", params("weak-array"))
    found = []
    for _ in range(3):
        measurement.prepare()
        found.append(measurement.once()[1])
    measurement.teardown()
    assert len(set(found)) == 3


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "size", "says"), [("weak-array-access", 200, "282 rows"), ("weak-frame-access", 21, "has 42")]
)
def test_a_look_up_beyond_the_data_says_how_large_it_is(
    cluster: WorkloadContext, name: str, size: int, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        run(created(cluster, name, {"problem_size": size}))


@pytest.mark.integration
def test_a_shuffle_by_dasks_own_choice_is_right_too_and_promises_no_traffic(cluster: WorkloadContext) -> None:
    sort = created(cluster, "weak-frame-sort", params("weak-frame", shuffle="default"))
    result, _ = run(sort, reps=1, warmup=0)
    assert (result.status, result.least_moved_bytes) == ("ok", 0)


@pytest.mark.parametrize(
    ("threads", "side", "chunk"), [(1, 5000, 5000), (2, 7071, 4999), (4, 10000, 5000), (48, 34641, 4999)]
)
def test_the_array_grows_with_the_threads_as_the_original_does(threads: int, side: int, chunk: int) -> None:
    assert square(5000, threads) == (side, chunk)


def test_the_frame_has_two_partitions_per_thread_of_half_the_size_each() -> None:
    assert partition_starts(3000, 2) == (0, 1500, 3000, 4500, 6000)
    assert partition_starts(3, 2) == (0, 1, 3, 4, 6)


def test_what_a_worker_holds_does_not_grow_with_the_cluster() -> None:
    transpose = CATALOGUE["weak-array-transpose"]
    given = {"problem_size": 5000, "mode": "persisted"}
    held = {nodes: transpose.held(given, Shape(nodes, 4, 1)) for nodes in (1, 4, 16)}
    assert held[1] == (4 + 3) * 5000**2 * 8
    assert max(held.values()) <= 2 * held[1]


@pytest.mark.parametrize(("nodes", "chunks"), [(1, 4), (2, 2), (4, 1)])
def test_an_array_that_is_persisted_lies_in_equal_shares(nodes: int, chunks: int) -> None:
    """200 × 200 numbers in four chunks, of four threads."""
    held = CATALOGUE["weak-array-std"].held
    shape = Shape(nodes, 1, 4 // nodes)
    persisted, drawn = (held({"problem_size": 100, "mode": mode}, shape) for mode in ("persisted", "as-published"))
    assert persisted - drawn == chunks * 100**2 * 8


@pytest.mark.integration
def test_a_partition_that_several_workers_hold_has_no_owner(cluster: WorkloadContext) -> None:
    """It need not move, so it can't count among the bytes that must."""
    task = created(cluster, "weak-frame-std", params("weak-frame", mode="persisted"))
    task.setup()
    task.prepare()
    assert set(task.owners()) == set(cluster.workers)
    cluster.client.replicate(task._data)
    assert set(task.owners()) == {""}
    task.teardown()
