"""Summit's dataframe operations on files: right answers pass, and every way of being wrong is noticed."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpubench.model.suite import Suite
from gpubench.workloads import csv_frames, families
from gpubench.workloads.base import UnavailableError, WorkloadContext
from tests.workloads.running import Answers, complete, measured_rightly

pytestmark = pytest.mark.integration

SMALL = {"rows": 430, "columns": 3, "ids": 30, "chunk": 7000}
KEPT = SMALL | {"result": "persist"}
COMPUTED = SMALL | {"result": "compute"}
WORKLOADS = [
    ("csv-read", KEPT),
    ("csv-read", COMPUTED),
    ("nunique", KEPT),
    ("nunique", COMPUTED | {"partitions": 3}),
    ("frame-groupby", KEPT | {"partitions": 2}),
    ("frame-groupby", COMPUTED),
    ("index-merge", KEPT),
    ("index-merge", COMPUTED | {"partitions": 2}),
]


@pytest.mark.parametrize(("name", "params"), WORKLOADS, ids=str)
def test_an_operation_on_csv_files_answers_rightly(cluster: WorkloadContext, name: str, params: dict[str, Any]) -> None:
    measured_rightly(cluster, name, params, moves=name != "csv-read")


def raised(column: str, by: float) -> Callable[[list[Any]], list[Any]]:
    """Every result with ``by`` added to one row of one column, in the first partition where it has some."""

    def change(frame: Any) -> Any:
        frame = frame.copy()
        frame.loc[frame.index[:1], column] += by
        return frame

    def falsify(frames: list[Any]) -> list[Any]:
        return [frame.map_partitions(change) if hasattr(frame, "map_partitions") else change(frame) for frame in frames]

    return falsify


def only(number: int, falsify: Callable[[list[Any]], list[Any]]) -> Callable[[list[Any]], list[Any]]:
    return lambda frames: [*frames[:number], *falsify(frames[number : number + 1]), *frames[number + 1 :]]


FALSIFIED: list[tuple[str, dict[str, Any], Callable[[list[Any]], list[Any]]]] = [
    ("csv-read", COMPUTED, lambda rows: [rows[0] - 1]),
    ("csv-read", KEPT, raised("row", 1)),
    ("csv-read", KEPT, raised("a_b", 1e-13)),
    ("csv-read", KEPT, lambda frames: [frames[0].partitions[:-1]]),
    ("nunique", COMPUTED, lambda ids: [ids[0] + 1]),
    ("nunique", KEPT, lambda ids: [ids[0] - 1]),
    ("frame-groupby", COMPUTED, only(0, raised("a_b", -1e-13))),
    ("frame-groupby", COMPUTED, only(1, raised("a_b", 1e-13))),
    ("frame-groupby", COMPUTED, only(2, raised("a_b", 1e-8))),
    ("frame-groupby", COMPUTED, only(3, raised("a_b", 1))),
    ("frame-groupby", COMPUTED, lambda frames: [frame[1:] for frame in frames]),
    ("index-merge", COMPUTED, raised("q_a", 1e-13)),
    ("index-merge", COMPUTED, lambda frames: [frames[0][1:]]),
    ("index-merge", COMPUTED, lambda frames: [frames[0].assign(q_a=frames[0]["q_a"].to_numpy()[::-1])]),
    ("index-merge", KEPT, raised("a_a", 1e-13)),
]


@pytest.mark.parametrize(("name", "params", "falsify"), FALSIFIED, ids=[f"{i}-{x[0]}" for i, x in enumerate(FALSIFIED)])
def test_a_falsified_frame_is_called_wrong(
    answers: Answers, name: str, params: dict[str, Any], falsify: Callable[[Any], Any]
) -> None:
    answers.called_wrong(name, params, falsify)


def test_the_workloads_of_one_run_share_their_files(cluster: WorkloadContext, tmp_path: Path) -> None:
    shared = dataclasses.replace(cluster, shared=str(tmp_path))
    paths = []
    for name in ("csv-read", "nunique"):
        measurement: Any = families.create(name, shared, "dask", complete(name, SMALL))
        measurement.setup()
        measurement.teardown()
        paths.append(measurement.left_path)
    assert paths[0] == paths[1]
    assert paths[0].parent.parent == tmp_path
    assert len(list(tmp_path.iterdir())) == 1


def test_workers_that_do_not_see_the_files_are_named(cluster: WorkloadContext, monkeypatch: pytest.MonkeyPatch) -> None:
    measurement = families.create("csv-read", cluster, "dask", complete("csv-read", SMALL))
    monkeypatch.setattr(cluster.client, "run", lambda *_: dict.fromkeys(cluster.workers, -1))
    with pytest.raises(UnavailableError, match=r"tcp://.*can't read .*: name a shared one as `directory`"):
        measurement.setup()


@pytest.mark.parametrize("change", [{"rows": 0}, {"columns": 0}, {"columns": 261}], ids=str)
def test_tables_that_cannot_be_are_refused(cluster: WorkloadContext, change: dict[str, int]) -> None:
    measurement = families.create("nunique", cluster, "dask", complete("nunique", SMALL | change))
    with pytest.raises(ValueError, match="needs a row and 1 to 260 columns"):
        measurement.setup()


def test_what_pandas_reads_from_the_files_is_what_the_generator_says(tmp_path: Path) -> None:
    table = csv_frames.Table(rows=25_003, columns=2, ids=50, seed=3)
    expected = csv_frames.write(table, tmp_path / "left.csv", tmp_path / "right.csv")
    left, right = (pd.read_csv(tmp_path / f"{side}.csv") for side in ("left", "right"))
    assert list(left) == ["row", "id", "a_a", "a_b"]
    assert list(right) == ["row", "q_a", "q_b"]
    assert left["row"].tolist() == list(range(25_003))
    assert (len(right), table.right_rows) == (2501, 2501)
    joined = left.merge(right, on="row")
    numbers = [csv_frames.wholes(joined[names]) for names in (["a_a", "a_b"], ["q_a", "q_b"])]
    assert expected.joined == csv_frames.joined_figures(joined["row"], numbers, numbers[0][:, 0], numbers[1][:, 0])
    assert expected.left == csv_frames.read_figures(left["row"], csv_frames.wholes(left[["a_a", "a_b"]]))
    by_id = left.groupby("id")["a_b"].agg(["count", "min", "max", "sum"])
    assert sorted(expected.groups) == by_id.index.tolist()
    for number, (count, smallest, largest, total) in expected.groups.items():
        found = by_id.loc[number]
        assert (count, smallest[1], largest[1]) == (found["count"], *csv_frames.wholes(found[["min", "max"]]))
        np.testing.assert_allclose(total[1], found["sum"], rtol=1e-12)


def test_every_line_of_a_table_has_the_same_length(tmp_path: Path) -> None:
    csv_frames.write(csv_frames.Table(rows=30, columns=4, ids=9, seed=1), tmp_path / "left.csv", tmp_path / "right.csv")
    for side in ("left", "right"):
        _, *lines = (tmp_path / f"{side}.csv").read_text().splitlines()
        assert len({len(line) for line in lines}) == 1


def test_the_summit_suite_reads_in_the_chunks_of_the_original() -> None:
    path = Path(__file__).parents[2] / "suites" / "summit-cudf.toml"
    suite = Suite.model_validate(tomllib.loads(path.read_text()))
    resolved = suite.resolve("summit-cudf.toml", reps=None, timeout_s=60.0)
    chunks = [entry.params["chunk"] for entry in resolved if entry.name == "csv-read"]
    assert (chunks[0], chunks[-1], len(chunks)) == (32 * 10**6, 8 * 10**9, 9)
    assert {entry.name for entry in resolved} == {"csv-read", "nunique", "frame-groupby", "index-merge"}
    assert {entry.params["columns"] for entry in resolved} == {260}


def test_no_column_of_the_largest_table_has_the_name_of_another() -> None:
    table = csv_frames.Table(rows=10, columns=260, ids=5, seed=3)
    names = ["row", "id", *table.left_names, *table.right_names]
    assert len(names) == len(set(names)) == 2 + 2 * 260
