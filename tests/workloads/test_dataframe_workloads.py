"""shuffle, groupby, read-parquet and the back-ends of merge, on a real cluster."""

import dataclasses
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpubench.node.workloads import families, frame_shuffle, groupby
from gpubench.node.workloads.base import UnavailableError, WorkloadContext
from tests.workloads.running import Answers, complete, created, measured_rightly, run

pytestmark = pytest.mark.integration

SHUFFLE = {"in_parts": 5, "partition_size": 800}
GROUPBY = {"in_parts": 3, "rows_per_chunk": 200, "unique_ratio": 0.05}
PARQUET = {"files": 3, "rows_per_file": 100}
WORKLOADS: list[tuple[str, dict[str, Any], bool]] = [
    ("shuffle", SHUFFLE, True),
    ("shuffle", SHUFFLE | {"ignore_index": True}, True),
    ("shuffle", SHUFFLE | {"method": "p2p"}, False),
    ("shuffle", SHUFFLE | {"method": "disk"}, False),
    ("groupby", GROUPBY, True),
    ("groupby", GROUPBY | {"sort": True, "split_out": 2, "split_every": 2}, False),
    ("groupby", GROUPBY | {"generate": True}, False),
    ("read-parquet", PARQUET, False),
]


@pytest.mark.parametrize(("name", "params", "moves"), WORKLOADS, ids=str)
def test_a_dataframe_workload_answers_rightly_and_what_it_must_move_is_seen(
    cluster: WorkloadContext, name: str, params: dict[str, Any], moves: bool
) -> None:
    measured_rightly(cluster, name, params, moves=moves)


@pytest.mark.parametrize(
    ("method", "parts", "talks"), [("tasks", 5, False), ("p2p", 2, True), ("p2p", 1, False), ("disk", 5, False)]
)
def test_a_shuffle_peer_to_peer_is_known_to_talk_past_dask_s_log(
    cluster: WorkloadContext, method: str, parts: int, talks: bool
) -> None:
    assert created(cluster, "shuffle", SHUFFLE | {"method": method, "in_parts": parts}).talks_past_log == talks


def changed(parts: list[list[int]], place: int, by: int) -> list[list[int]]:
    first = [value + by * (position == place) for position, value in enumerate(parts[0])]
    return [first, *parts[1:]]


FALSIFIED: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
    *[("shuffle", SHUFFLE, lambda parts, place=place: changed(parts, place, -1)) for place in range(4)],
    *[("groupby", GROUPBY, lambda parts, place=place: changed(parts, place, 1)) for place in range(5)],
    ("read-parquet", PARQUET, lambda parts: changed(parts, 0, -1)),
    ("read-parquet", PARQUET, lambda parts: changed(parts, 1, 100)),
    ("read-parquet", PARQUET, lambda parts: [part[:2] for part in parts]),
    ("read-parquet", PARQUET, lambda parts: parts[1:]),
]


@pytest.mark.parametrize(("name", "params", "falsify"), FALSIFIED, ids=[f"{i}-{x[0]}" for i, x in enumerate(FALSIFIED)])
def test_a_falsified_dataframe_answer_is_called_wrong(
    answers: Answers, name: str, params: dict[str, Any], falsify: Callable[[Any], Any]
) -> None:
    answers.called_wrong(name, params, falsify)


def test_a_key_in_two_output_partitions_is_seen() -> None:
    frame = pd.concat([frame_shuffle.partition(seed, 10, "cpu") for seed in range(3)])
    assert frame_shuffle.figures(frame, 10, 3, "cpu") == [30, 10, 135, 1]
    assert frame_shuffle.figures(frame[:-1], 10, 3, "cpu")[3] == 0


@pytest.mark.parametrize(("chunks", "rows", "keys"), [(1, 50, 7), (3, 200, 30), (5, 20, 1000)])
def test_the_groups_that_are_counted_are_those_of_a_real_groupby(chunks: int, rows: int, keys: int) -> None:
    frame = pd.concat([groupby.chunk(number, rows, keys, "cpu") for number in range(chunks)])
    grouped = frame.groupby("key").agg({"int64": ["max", "count"], "float64": "mean"})
    whole = groupby.dense(0, rows, keys, "cpu")
    for number in range(1, chunks):
        whole = groupby.combined(whole, groupby.dense(number, rows, keys, "cpu"))
    assert groupby.dense_figures(whole) == groupby.grouped_figures(grouped, "cpu")
    swapped = grouped.copy()
    swapped.iloc[[0, 1]] = grouped.iloc[[1, 0]].to_numpy()
    assert groupby.dense_figures(whole) != groupby.grouped_figures(swapped, "cpu")


def test_a_users_parquet_files_are_read_and_stay(cluster: WorkloadContext, tmp_path: Path) -> None:
    for number in range(2):
        frame = pd.DataFrame({"name": ["a", "b"], "value": np.array([1.5, 2.0]) + number})
        frame.to_parquet(tmp_path / f"{number}.parquet")
    result = measured_rightly(cluster, "read-parquet", {"path": str(tmp_path)}, moves=False)
    assert (result.details["rows"], result.details["expected_sums"]) == (4, [10])
    assert len(list(tmp_path.iterdir())) == 2


def test_parquet_files_that_are_written_are_removed(cluster: WorkloadContext) -> None:
    measurement = families.create("read-parquet", cluster, "dask", complete("read-parquet", PARQUET))
    measurement.setup()
    folder = Path(measurement._folder)  # type: ignore[attr-defined]
    assert len(list(folder.iterdir())) == 3
    measurement.teardown()
    assert not folder.exists()


def test_a_worker_that_does_not_see_the_parquet_files_is_named_and_the_workload_skipped(
    cluster: WorkloadContext, tmp_path: Path
) -> None:
    params = complete("read-parquet", {"path": str(tmp_path / "nowhere")})
    with pytest.raises(UnavailableError, match=r"2 of 2 workers don't see .*nowhere.*file system that all nodes share"):
        run(families.create("read-parquet", cluster, "dask", params))


def test_a_shuffle_by_disk_over_several_hosts_is_skipped(cluster: WorkloadContext) -> None:
    far = dataclasses.replace(cluster, workers=[*cluster.workers, "tcp://10.1.2.3:1"])
    with pytest.raises(UnavailableError, match="one host, not 2"):
        run(families.create("shuffle", far, "dask", complete("shuffle", SHUFFLE | {"method": "disk"})))


@pytest.mark.skipif(importlib.util.find_spec("dask_cuda") is not None, reason="dask-cuda is installed")
def test_explicit_comms_without_dask_cuda_are_skipped_with_the_range_that_has_them(cluster: WorkloadContext) -> None:
    measurement = families.create("merge", cluster, "explicit-comms", complete("merge", {"rows_per_worker": 200}))
    with pytest.raises(UnavailableError, match=r"needs dask-cuda before 26\.6, and this image has no dask-cuda"):
        run(measurement)
