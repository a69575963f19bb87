"""Text of ucx_perftest, ucxx, OSU, nccl-tests and rapidsmpf; fixtures/README.md says which of its lines are real."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from gpubench.errors import DataError
from gpubench.importers.directory import Given, ImportedResults, import_files
from gpubench.importers.formats import FORMATS

FIXTURES = Path(__file__).parent / "fixtures"


def imported(form: str, source: Path, tmp_path: Path) -> ImportedResults:
    return import_files(form, FORMATS[form], [source], tmp_path / "out", Given())


def rows(found: ImportedResults) -> list[dict[str, Any]]:
    return list(found.table.sort("file", "line").iter_rows(named=True))


def reasons(found: ImportedResults) -> list[str]:
    return [f"{one['line']}: {one['reason']}" for one in found.note["refused"]]


@pytest.mark.parametrize("form", ["osu", "ucx-perftest", "ucxx", "nccl-tests", "cudf-polars", "rapidsmpf", "table"])
def test_no_block_and_no_version_is_made_up(form: str, tmp_path: Path) -> None:
    folder = {"ucx-perftest": "ucx_perftest", "nccl-tests": "nccl_tests", "cudf-polars": "cudf_polars"}
    if form == "table":
        (tmp_path / "table.csv").write_text("wall_s,block,job\n1.0,3,4\n")
    source = tmp_path / "table.csv" if form == "table" else FIXTURES / folder.get(form, form)
    for row in rows(imported(form, source, tmp_path)):
        for name in ("block", "job", "order", "variant", "ucx_version", "transport", "site", "started_at", "image"):
            assert row[name] is None, (name, row)


@pytest.mark.parametrize(
    ("test", "seconds", "window"), [("tag match latency", 2380.178e-6, "1"), ("tag match bandwidth", 1105.594e-6, "32")]
)
def test_the_final_line_of_ucx_perftest_is_the_mean_over_all_iterations(
    tmp_path: Path, test: str, seconds: float, window: str
) -> None:
    name = f"tag_{'lat' if 'latency' in test else 'bw'}.out"
    (row,) = rows(imported("ucx-perftest", FIXTURES / "ucx_perftest" / name, tmp_path))
    assert (row["workload"], row["wall_s"], row["reps"]) == (f"ucx_perftest: {test}", pytest.approx(seconds), 300)
    assert (row["bytes"], row["device"], row["nodes"], row["date"]) == (8192, "cpu", None, None)
    params = json.loads(row["params"])
    assert (params["size"], params["window_size"], params["send_memory"]) == (8192, window, "host")


def test_figures_of_ucx_perftest_agree_with_each_other_as_they_are_read(tmp_path: Path) -> None:
    """MB are 2^20 bytes, and a message takes what its rate says."""
    (row,) = rows(imported("ucx-perftest", FIXTURES / "ucx_perftest" / "tag_lat.out", tmp_path))
    extra = json.loads(row["extra"])
    assert row["bytes"] / row["wall_s"] / 2**20 == pytest.approx(float(extra["overall_mb_s"]), rel=0.002)
    assert 1 / row["wall_s"] == pytest.approx(float(extra["overall_msg_s"]), rel=0.002)
    assert [one["iterations"] for one in extra["reports"]] == ["203"]


def test_before_ucx_1_11_the_last_line_of_ucx_perftest_is_the_result(tmp_path: Path) -> None:
    (row,) = rows(imported("ucx-perftest", FIXTURES / "ucx_perftest" / "ucx-3329.txt", tmp_path))
    assert (row["workload"], row["wall_s"], row["reps"]) == (
        "ucx_perftest: overhead",
        pytest.approx(1107.116e-6),
        1000,
    )
    assert (row["bytes"], row["device"], row["params"]) == (None, None, "{}")


def test_ucx_perftest_that_was_cut_off_or_is_the_servers_alone_has_no_result(tmp_path: Path) -> None:
    lines = (FIXTURES / "ucx_perftest" / "tag_lat.out").read_text().splitlines()
    (tmp_path / "cut.out").write_text("\n".join(lines[:-1]))
    with pytest.raises(DataError, match=r"cut.out:17: run 1 ends before 'Final:'"):
        imported("ucx-perftest", tmp_path / "cut.out", tmp_path)
    (tmp_path / "server.out").write_text("\n".join(lines[:11]))
    with pytest.raises(DataError, match=r"run 1 has no figures: the client prints them"):
        imported("ucx-perftest", tmp_path / "server.out", tmp_path)


def test_two_runs_of_ucx_perftest_in_one_file_are_two_runs(tmp_path: Path) -> None:
    both = [(FIXTURES / "ucx_perftest" / name).read_text() for name in ("ucx-3329.txt", "tag_bw.out")]
    (tmp_path / "both.out").write_text("".join(both))
    found = rows(imported("ucx-perftest", tmp_path / "both.out", tmp_path))
    assert [row["run"] for row in found] == ["both.out:1", "both.out:2"]
    assert [row["bytes"] for row in found] == [None, 8192]


def test_iterations_of_ucxx_are_repetitions_and_their_mean_is_the_average_that_it_prints(tmp_path: Path) -> None:
    found = imported("ucxx", FIXTURES / "ucxx" / "socket.out", tmp_path)
    table = found.table
    assert (table["rep"].to_list(), set(table["reps"])) == (list(range(20)), {1})
    assert math.fsum(table["wall_s"]) / 20 == pytest.approx(1038502e-9, abs=1e-9)
    row = rows(found)[0]
    assert (row["backend"], row["device"], row["bytes"]) == ("socket", "cpu", None)
    assert json.loads(row["params"]) == {
        "bytes": "0.95 MiB",
        "number_of_buffers": "1",
        "object_type": "numpy",
        "reuse_allocation": "False",
    }
    assert found.note["refused"] == []


def test_settings_of_ucx_are_parameters_of_the_cell_where_ucxx_prints_them(tmp_path: Path) -> None:
    found = rows(imported("ucxx", FIXTURES / "ucxx" / "core.out", tmp_path))
    assert [row["wall_s"] for row in found][3] == pytest.approx(543130e-9)
    assert {row["backend"] for row in found} == {"ucxx-core"}
    params = json.loads(found[0]["params"])
    assert (params["progress_mode"], params["ucx_tls"], params["transfer_api"]) == ("blocking", "tcp", "TAG")


def test_without_its_detailed_report_ucxx_gives_one_mean(tmp_path: Path) -> None:
    (row,) = rows(imported("ucxx", FIXTURES / "ucxx" / "ucxx-312.txt", tmp_path))
    assert (row["wall_s"], row["reps"], row["rep"]) == (pytest.approx(44012e-9), 100, None)
    assert json.loads(row["extra"])["Latency (median)"] == "43967 ns"


def test_ucxx_that_was_cut_off_says_so(tmp_path: Path) -> None:
    lines = (FIXTURES / "ucxx" / "socket.out").read_text().splitlines()
    (tmp_path / "cut.out").write_text("\n".join(lines[:-5]))
    found = imported("ucxx", tmp_path / "cut.out", tmp_path)
    assert found.table.height == 15
    assert [one.partition(": ")[2] for one in reasons(found)] == [
        "15 of 20 iterations: the output is cut off; they are kept"
    ]


def test_a_bandwidth_of_osu_is_read_as_seconds_per_message(tmp_path: Path) -> None:
    (row,) = rows(imported("osu", FIXTURES / "osu" / "bw.out", tmp_path))
    assert (row["workload"], row["bytes"], row["reps"]) == ("OSU MPI Bandwidth", 1_048_576, None)
    assert row["wall_s"] == pytest.approx(1_048_576 / 19_095.27e6)
    assert (row["nodes"], row["workers"], row["device"]) == (None, None, None)


def test_columns_of_osu_are_read_by_their_heading(tmp_path: Path) -> None:
    small, large = rows(imported("osu", FIXTURES / "osu" / "allreduce.out", tmp_path))
    assert (small["workload"], small["wall_s"], small["reps"]) == (
        "OSU MPI-CUDA Allreduce Latency",
        pytest.approx(14.12e-6),
        1000,
    )
    assert (large["bytes"], large["device"]) == (1_048_576, "gpu")
    assert json.loads(large["params"]) == {"datatype": "MPI_FLOAT", "memory": "device to device", "size": 1_048_576}
    assert json.loads(large["extra"])["Max Latency(us)"] == "214.06"


def test_osu_rows_without_a_time_or_with_a_wrong_answer_are_refused(tmp_path: Path) -> None:
    found = imported("osu", FIXTURES / "osu" / "latency.out", tmp_path)
    assert reasons(found) == ["6: no size and time: 2 0.00 Pass", "7: its answer was wrong (Validation)"]
    *latency, barrier = rows(found)
    assert [(row["bytes"], row["answer"]) for row in latency] == [(0, "ok"), (1, "ok")]
    assert (barrier["workload"], barrier["bytes"], barrier["params"]) == ("OSU MPI Barrier Latency", None, "{}")
    assert barrier["wall_s"] == pytest.approx(1.87e-6)


def test_nccl_tests_give_two_rows_a_size_with_the_ranks_and_hosts(tmp_path: Path) -> None:
    found = imported("nccl-tests", FIXTURES / "nccl_tests", tmp_path)
    table = rows(found)
    assert [(row["bytes"], json.loads(row["params"])["place"]) for row in table] == [
        (8, "out-of-place"),
        (8, "in-place"),
        (33_554_432, "out-of-place"),
    ]
    assert reasons(found) == ["15: in-place: its answer was wrong (#wrong 3)"]
    row = table[2]
    assert (row["workload"], row["wall_s"], row["reps"]) == (
        "nccl-tests: all_reduce_perf",
        pytest.approx(1803.2e-6),
        20,
    )
    assert (row["workers"], row["nodes"], row["device"], row["answer"]) == (4, 2, "gpu", "ok")
    assert row["bytes"] / row["wall_s"] / 1e9 == pytest.approx(18.61, rel=1e-3)


def test_older_nccl_tests_are_called_by_their_file_and_their_deviation_is_no_verdict(tmp_path: Path) -> None:
    lines = [
        "# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 1(factor) warmup iters: 5 iters: 20 validation: 1",
        "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error",
        "           8             2   float    30.96    0.00    0.00  2e-07    30.27    0.00    0.00    N/A",
    ]
    (tmp_path / "sendrecv_perf.out").write_text("\n".join(lines))
    first, second = rows(imported("nccl-tests", tmp_path / "sendrecv_perf.out", tmp_path))
    assert (first["workload"], first["answer"], first["workers"]) == ("nccl-tests: sendrecv_perf", "unchecked", None)
    assert (first["wall_s"], second["wall_s"]) == (pytest.approx(30.96e-6), pytest.approx(30.27e-6))


def test_a_line_of_rapidsmpf_is_the_mean_of_its_runs(tmp_path: Path) -> None:
    (row,) = rows(imported("rapidsmpf", FIXTURES / "rapidsmpf", tmp_path))
    assert (row["workload"], row["wall_s"], row["workers"], row["reps"]) == ("rapidsmpf: bench_shuffle", 3.09, 8, None)
    assert json.loads(row["params"]) == {"in_parts": 1, "out_parts": 2}
    assert json.loads(row["extra"])["global throughput"] == "38.62 GiB/s"


def test_a_line_of_rapidsmpf_without_seconds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bench_comm.out").write_text("means: 3.09 ms | nranks: 8\nmeans:\nmeans: 2.5 sec | nranks: 8\n" * 2)
    with pytest.raises(DataError, match=r"4 of 6 rows .* bench_comm.out:1: means '3.09 ms' are no seconds"):
        imported("rapidsmpf", tmp_path / "bench_comm.out", tmp_path)


def test_how_a_window_of_osu_is_made_and_synchronised_is_part_of_the_cell(tmp_path: Path) -> None:
    """Both runs are as OSU 5.8 prints them; they are not the same measurement."""
    (tmp_path / "get.out").write_text(
        "# OSU MPI_Get_accumulate latency Test v5.8\n# Window creation: MPI_Win_create\n"
        "# Synchronization: MPI_Win_lock/unlock\n# Size          Latency (us)\n1                     109.91\n"
        "# OSU MPI_Get_accumulate latency Test v5.8\n# Window creation: MPI_Win_allocate\n"
        "# Synchronization: MPI_Win_flush\n# Size          Latency (us)\n1                       3.16\n"
    )
    first, second = rows(imported("osu", tmp_path / "get.out", tmp_path))
    assert (first["workload"], first["wall_s"]) == ("OSU MPI_Get_accumulate latency", pytest.approx(109.91e-6))
    assert json.loads(first["params"]) == {
        "size": 1,
        "synchronization": "MPI_Win_lock/unlock",
        "window_creation": "MPI_Win_create",
    }
    assert json.loads(second["params"])["synchronization"] == "MPI_Win_flush"


@pytest.mark.parametrize(
    ("head", "row", "seconds", "params"),
    [
        (
            "# OSU MPI Multiple Bandwidth / Message Rate Test v7.1\n# [ pairs: 1024 ] [ window size: 64 ]\n"
            "# Size                  MB/s        Messages/s\n# Datatype: MPI_CHAR.",
            "2                    4506.48     2253241978.68",
            2 / 4506.48e6,
            {"datatype": "MPI_CHAR", "pairs": 1024, "size": 2, "window_size": 64},
        ),
        (
            "# OSU MPI Non-blocking All-to-All Latency Test v5.6.3\n"
            "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n"
            "# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)",
            "4                       9.98              5.87              4.93             16.62",
            9.98e-6,
            {"size": 4},
        ),
        (
            "# OSU MPI Allgather Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
            "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations",
            "1048576               104.30            104.26            104.33          10",
            104.30e-6,
            {"datatype": "MPI_CHAR", "size": 1_048_576},
        ),
    ],
)
def test_lines_that_releases_of_osu_print_in_different_places_are_read(
    tmp_path: Path, head: str, row: str, seconds: float, params: dict[str, Any]
) -> None:
    (tmp_path / "one.out").write_text(f"srun: job 4711\n{head}\n{row}\n\nreal\t0m1.162s\n")
    found = imported("osu", tmp_path / "one.out", tmp_path)
    assert found.note["refused"] == []
    (read,) = rows(found)
    assert read["wall_s"] == pytest.approx(seconds)
    assert json.loads(read["params"]) == params


def test_the_tags_that_open_mpi_writes_before_each_line_are_left_out(tmp_path: Path) -> None:
    """As mpirun --tag-output prints nccl-tests 2.18 with NCCL's own messages between."""
    lines = [
        "# nccl-tests version 2.18.0 nccl-headers=22907 nccl-library=22907",
        "# Collective test starting: all_reduce_perf_mpi",
        "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 8388608 step: 2(factor) warmup iters: 10 iters: 50 agg iters: 1",
        "#  Rank  0 Group  0 Pid 2994729 on        one device  0 [0000:02:00] NVIDIA GeForce RTX 5090",
        "#  Rank  1 Group  0 Pid 2994730 on        two device  0 [0000:02:00] NVIDIA GeForce RTX 5090",
        f"#       size         count      type   redop    root{'     time   algbw   busbw #wrong' * 2}",
        "     4194304       1048576     float     sum      -1  4374.00  0.96  0.96   0  4375.49  0.96  0.96   0",
        "# Out of bounds values : 0 OK",
    ]
    (tmp_path / "tagged.out").write_text(
        "[1,1]<stderr>:NCCL INFO comm 0x7f9c0c000f60 rank 1\n" + "".join(f"[1,0]<stdout>:{line}\n" for line in lines)
    )
    found = imported("nccl-tests", tmp_path / "tagged.out", tmp_path)
    assert found.note["refused"] == []
    out, in_place = rows(found)
    assert (out["workload"], out["reps"], out["nodes"], out["workers"]) == (
        "nccl-tests: all_reduce_perf_mpi",
        50,
        2,
        2,
    )
    assert (out["wall_s"], in_place["wall_s"]) == (pytest.approx(4374.00e-6), pytest.approx(4375.49e-6))
