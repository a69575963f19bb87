"""Summit's dataframe operations on files: right answers pass, and every way of being wrong is noticed."""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from contrib.csv_frames import csv_frames, csv_tables
from gpubench.node.workloads.base import UnavailableError, WorkloadContext
from gpubench.resources.own_workloads import own_workloads
from gpubench.resources.profiles import load_suite
from tests.workloads.contrib.conftest import CONTRIB, Family
from tests.workloads.running import Answers, created, measured_rightly

pytestmark = pytest.mark.system

FILE = "csv_frames/csv_frames.py"
ANY = "CsvRead"
NAMES = ("CsvRead", "NUnique", "FrameGroupby", "IndexMerge")
SMALL = {"rows": 430, "columns": 3, "ids": 30, "chunk": 7000}
KEPT = SMALL | {"result": "persist"}
COMPUTED = SMALL | {"result": "compute"}
WORKLOADS = [
    ("CsvRead", KEPT),
    ("CsvRead", COMPUTED),
    ("NUnique", KEPT),
    ("NUnique", COMPUTED | {"partitions": 3}),
    ("FrameGroupby", KEPT | {"partitions": 2}),
    ("FrameGroupby", COMPUTED),
    ("IndexMerge", KEPT),
    ("IndexMerge", COMPUTED | {"partitions": 2}),
]


@pytest.mark.parametrize(("name", "params"), WORKLOADS, ids=str)
def test_an_operation_on_csv_files_answers_rightly(
    cluster: WorkloadContext, family: Family, name: str, params: dict[str, Any]
) -> None:
    measured_rightly(cluster, family(name), params, moves=name != "CsvRead")


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
    ("CsvRead", COMPUTED, lambda rows: [rows[0] - 1]),
    ("CsvRead", KEPT, raised("row", 1)),
    ("CsvRead", KEPT, raised("a_b", 1e-13)),
    ("CsvRead", KEPT, lambda frames: [frames[0].partitions[:-1]]),
    ("NUnique", COMPUTED, lambda ids: [ids[0] + 1]),
    ("NUnique", KEPT, lambda ids: [ids[0] - 1]),
    ("FrameGroupby", COMPUTED, only(0, raised("a_b", -1e-13))),
    ("FrameGroupby", COMPUTED, only(1, raised("a_b", 1e-13))),
    ("FrameGroupby", COMPUTED, only(2, raised("a_b", 1e-8))),
    ("FrameGroupby", COMPUTED, only(3, raised("a_b", 1))),
    ("FrameGroupby", COMPUTED, lambda frames: [frame[1:] for frame in frames]),
    ("IndexMerge", COMPUTED, raised("q_a", 1e-13)),
    ("IndexMerge", COMPUTED, lambda frames: [frames[0][1:]]),
    ("IndexMerge", COMPUTED, lambda frames: [frames[0].assign(q_a=frames[0]["q_a"].to_numpy()[::-1])]),
    ("IndexMerge", KEPT, raised("a_a", 1e-13)),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "params", "falsify"), FALSIFIED, ids=[f"{i}-{x[0]}" for i, x in enumerate(FALSIFIED)])
def test_a_falsified_frame_is_called_wrong(
    answers: Answers, family: Family, name: str, params: dict[str, Any], falsify: Callable[[Any], Any]
) -> None:
    answers.called_wrong(family(name), params, falsify)


def test_the_workloads_of_one_run_share_their_files(cluster: WorkloadContext, family: Family, tmp_path: Path) -> None:
    shared = dataclasses.replace(cluster, shared=str(tmp_path))
    paths = []
    for name in ("CsvRead", "NUnique"):
        measurement: Any = created(shared, family(name), SMALL)
        measurement.setup()
        measurement.teardown()
        paths.append(measurement.left_path)
    assert paths[0] == paths[1]
    assert paths[0].parent.parent == tmp_path
    assert len(list(tmp_path.iterdir())) == 1


def test_workers_that_do_not_see_the_files_are_named(
    cluster: WorkloadContext, family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    measurement = created(cluster, family("CsvRead"), SMALL)
    monkeypatch.setattr(cluster.client, "run", lambda *_: dict.fromkeys(cluster.workers, -1))
    with pytest.raises(UnavailableError, match=r"tcp://.*can't read .*: name a shared one as `directory`"):
        measurement.setup()


@pytest.mark.parametrize("change", [{"rows": 0}, {"columns": 0}, {"columns": 261}], ids=str)
def test_tables_that_cannot_be_are_refused(cluster: WorkloadContext, family: Family, change: dict[str, int]) -> None:
    measurement = created(cluster, family("NUnique"), SMALL | change)
    with pytest.raises(ValueError, match="needs a row and 1 to 260 columns"):
        measurement.setup()


def test_what_pandas_reads_from_the_files_is_what_the_generator_says(tmp_path: Path) -> None:
    table = csv_tables.Table(rows=25_003, columns=2, ids=50, seed=3)
    expected = csv_tables.write(table, tmp_path / "left.csv", tmp_path / "right.csv")
    left, right = (pd.read_csv(tmp_path / f"{side}.csv") for side in ("left", "right"))
    assert list(left) == ["row", "id", "a_a", "a_b"]
    assert list(right) == ["row", "q_a", "q_b"]
    assert left["row"].tolist() == list(range(25_003))
    assert (len(right), table.right_rows) == (2501, 2501)
    joined = left.merge(right, on="row")
    numbers = [csv_tables.wholes(joined[names]) for names in (["a_a", "a_b"], ["q_a", "q_b"])]
    assert expected.joined == csv_tables.joined_figures(joined["row"], numbers, numbers[0][:, 0], numbers[1][:, 0])
    assert expected.left == csv_tables.read_figures(left["row"], csv_tables.wholes(left[["a_a", "a_b"]]))
    by_id = left.groupby("id")["a_b"].agg(["count", "min", "max", "sum"])
    assert sorted(expected.groups) == by_id.index.tolist()
    for number, (count, smallest, largest, total) in expected.groups.items():
        found = by_id.loc[number]
        assert (count, smallest[1], largest[1]) == (found["count"], *csv_tables.wholes(found[["min", "max"]]))
        np.testing.assert_allclose(total[1], found["sum"], rtol=1e-12)


def test_the_summit_suite_reads_in_the_chunks_of_the_original() -> None:
    suite, source = load_suite(str(CONTRIB / "csv_frames" / "summit-cudf.toml"))
    resolved = suite.resolve(source, reps=None, timeout_s=60.0, own=own_workloads(suite, source.name))
    chunks = [entry.params["chunk"] for entry in resolved if entry.name == "csv_frames.py:CsvRead"]
    assert (chunks[0], chunks[-1], len(chunks)) == (32 * 10**6, 8 * 10**9, 9)
    assert {entry.name for entry in resolved} == {f"csv_frames.py:{name}" for name in NAMES}
    assert {entry.params["columns"] for entry in resolved} == {260}


@pytest.mark.parametrize("keyword", ["chunksize", "blocksize"])
def test_cudf_is_told_the_chunk_by_the_keyword_that_it_has(monkeypatch: pytest.MonkeyPatch, keyword: str) -> None:
    readers: dict[str, Callable[..., Any]] = {
        "chunksize": lambda path, chunksize=None: (path, chunksize),
        "blocksize": lambda path, blocksize=None: (path, blocksize),
    }
    monkeypatch.setitem(sys.modules, "dask_cudf", SimpleNamespace(read_csv=readers[keyword]))
    assert csv_frames.read_csv("t.csv", 100, "gpu") == ("t.csv", 100)
