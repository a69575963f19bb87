"""``link``: the figures of the real ``ucx_perftest``, whose sides are processes beside the workers."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.workloads import link
from gpubench.node.workloads.base import UnavailableError, WorkloadContext
from gpubench.node.workloads.link import LinkTest
from tests.cli.campaigns import campaign_in, records
from tests.conftest import ROOT, Run
from tests.workloads.running import complete

WORKERS = ["tcp://127.0.0.1:1", "tcp://127.0.0.1:2"]
# Lines of UCX 1.22.0, -t tag_lat -n 2000
PRINTED = """
[thread 0]               918      3.981   642.718  1104.209        0.01       0.01        1556         906
Final:                  2000      3.996   200.459   615.281        0.04       0.01        4989        1625
"""
SUITE = """
name = "links"
reps = 2
warmup = 1
[[workload]]
name = "link"
[workload.params]
size = "1KiB"
iterations = 50
[[workload]]
name = "link"
[workload.params]
test = "tag_bw"
size = "64KiB"
iterations = 20
[[workload]]
name = "link"
reps = 1
warmup = 0
[workload.params]
test = "send_recv"
size = "64KiB"
iterations = 10
"""
SEND_RECV = ROOT / "tests" / "workloads" / "fixtures" / "send_recv.out"
"""By ucxx 0.45.1 with UCX_TLS=tcp: ``python -m ucxx.benchmarks.send_recv -l ucxx-core --progress-mode blocking -o numpy
-n 1MB --n-iter 6 --n-warmup-iter 2``; addresses are replaced."""


@pytest.mark.parametrize("visible", ["0", "2,3", "3,0,1,2", "GPU-a,GPU-b", "MIG-a"])
@pytest.mark.parametrize("is_client", [False, True])
def test_both_sides_of_ucx_perftest_are_on_the_gpu_of_their_worker(visible: str, is_client: bool) -> None:
    """``gpu_index = group_index % num_gpus`` (src/tools/perf/cuda/cuda_alloc.c), 0 of a server and 1 of a client."""
    shown = link.shown_gpus(visible, is_client=is_client).split(",")
    assert shown[is_client % len(shown)] == visible.partition(",")[0]
    assert sorted(shown) == sorted(visible.split(","))


@pytest.mark.parametrize("is_client", [False, True])
def test_both_sides_of_ucx_perftest_are_on_the_instance_of_mig_of_their_worker(is_client: bool) -> None:
    """Of several instances CUDA shows a process the first."""
    assert link.shown_gpus("MIG-a,MIG-b,MIG-c", is_client=is_client).partition(",")[0] == "MIG-a"


def test_the_overall_figure_counts_and_not_the_last_interval_s_average() -> None:
    assert link.figures(PRINTED) == {"iterations": 2000, "median_s": 3.996e-6, "overall_s": 615.281e-6}


@pytest.mark.parametrize("text", ["", "Final: 2000", "Final: 2000 1 2 3 4 5 6", "Final: a b c d e f g h"])
def test_what_holds_no_eight_final_figures_is_no_result(text: str) -> None:
    with pytest.raises(ValueError, match="no final figures"):
        link.figures(text)


def test_the_binding_s_latencies_are_half_of_a_round_trip_in_nanoseconds() -> None:
    printed = SEND_RECV.read_text()
    average = int(re.findall(r"Latency \(average\) +\| (\d+) ns", printed)[0])
    median = int(re.findall(r"Latency \(median\) +\| (\d+) ns", printed)[0])
    assert link.figures_of_binding(printed) == {
        "iterations": 6,
        "median_s": pytest.approx(median / 1e9),
        "overall_s": pytest.approx(average / 1e9),
    }
    for lacking in ("Latency (average)", "Latency (median)", "Iterations"):
        with pytest.raises(ValueError, match="printed no summary"):
            link.figures_of_binding(printed.replace(lacking, "Other"))


def measurement(**params: Any) -> LinkTest:
    return LinkTest(WorkloadContext(None, WORKERS, 1, "cpu", "ucxx"), complete("link", params))


PLAYED = {"iterations": 1000.0, "median_s": 1e-6, "overall_s": 2e-6}


@pytest.mark.parametrize(
    ("played", "status"),
    [
        ([PLAYED], "unchecked"),
        ([PLAYED | {"iterations": 999.0}], "wrong"),
        ([PLAYED | {"overall_s": 0.0}], "wrong"),
        ([PLAYED, PLAYED], "wrong"),
    ],
)
def test_every_pair_completes_all_iterations_in_a_time_that_is_one(played: list[dict[str, float]], status: str) -> None:
    assert measurement().check(played).status == status


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "no UCX is loaded, so there has no ucx_perftest beside it"),
        ({"test": "send_recv"}, r"own ucxx\.benchmarks\.send_recv; .* doesn't communicate by ucxx"),
    ],
)
def test_what_an_image_or_a_worker_lacks_is_said(cluster: WorkloadContext, params: dict[str, str], said: str) -> None:
    with pytest.raises(UnavailableError, match=said):
        LinkTest(cluster, complete("link", params)).setup()


# ucx_perftest as far as its own connection goes: a server takes one, and listens no more.
PERFTEST = """#!/usr/bin/env python3
import socket, sys
words = sys.argv[1:]
port = int(words[words.index("-p") + 1])
if words[0] == "-p":
    with socket.create_server(("", port)) as listener:
        partner = listener.accept()[0]
    if partner.recv(9) != b"ucx":
        sys.exit("1 perftest.c:133 UCX ERROR recv() remote closed connection")
else:
    try:
        with socket.create_connection((words[0], port)) as partner:
            partner.sendall(b"ucx")
    except ConnectionRefusedError:
        sys.exit("1 perftest.c:438 UCX ERROR client failed. connect() failed: Connection refused\\nlast words")
    print("Final: 50 1.0 1.0 2.0 1 1 1 1")
"""
ALONE = """
import asyncio, ctypes, json, socket, sys
from gpubench.node.workloads import link
from gpubench.node.workloads.base import WorkloadContext
from tests.workloads.running import complete

ctypes.CDLL(sys.argv[1])
loop = asyncio.new_event_loop()
strangers = int(sys.argv[2])

class Client:
    def run(self, function, *args, workers):
        global strangers
        if function is link.play and strangers:
            strangers -= 1
            socket.create_connection(("127.0.0.1", args[1])).close()
            while link.is_listening(args[1]):
                pass
        return {workers[0]: loop.run_until_complete(function(*args))}

WORKERS = ["tcp://127.0.0.1:1", "tcp://127.0.0.1:2"]
params = complete("link", {"iterations": 50})
one = link.LinkTest(WorkloadContext(Client(), WORKERS, 1, "cpu", "ucxx"), params)
try:
    print(json.dumps([one.once()[0], strangers, len(link._SERVERS)]))
except RuntimeError as error:
    print(json.dumps([str(error), strangers, len(link._SERVERS)]))
"""


@pytest.mark.parametrize("strangers", [0, 2, 3])
def test_a_server_that_a_stranger_took_is_started_anew_three_times_at_most(tmp_path: Path, strangers: int) -> None:
    library, program = tmp_path / "lib" / "libucp.so.0", tmp_path / "bin" / "ucx_perftest"
    for path in (library, program):
        path.parent.mkdir()
    # Any library that is no UCX and needs no other beside it: what is loaded as libucp is looked for by its file name.
    shutil.copy(next(path for path in link_libraries() if Path(path).name.startswith(("libm.", "libm-"))), library)
    program.write_text(PERFTEST)
    program.chmod(0o755)
    words = [sys.executable, "-c", ALONE, str(library), str(strangers)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    found, left, servers = json.loads(done.stdout)
    assert (left, servers) == (0, 0)
    if strangers < 3:
        assert found == pytest.approx(2 * 2e-6 * 50)
    else:
        assert "ucx_perftest ended with exit code 1: 1 perftest.c:438 UCX ERROR client failed" in found


def link_libraries() -> list[str]:
    """Shared libraries that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sorted({"/" + line.partition("/")[2] for line in lines if ".so" in line})


@pytest.mark.system
def test_pairs_of_workers_play_through_the_image_s_own_ucx(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "links.toml").write_text(SUITE)
    words = ("--variants", "a=1.22.0 b=1.22.0", "--blocks", "1", "--workers", "2", "--protocol", "ucx")
    done = gpubench("bench", "--suite", "links.toml", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    campaign = campaign_in(tmp_path)
    for run, record in records(campaign).items():
        trips, one_way, binding = sorted(
            record["workloads"], key=lambda each: ("tag_lat", "tag_bw", "send_recv").index(str(each["params"]["test"]))
        )
        for workload in (trips, one_way, binding):
            assert (workload["status"], workload["reason"]) == ("ok", ""), run
            assert workload["details"]["libucp"].endswith("libucp.so.0")
        assert trips["details"]["seen_bytes"] == 2 * 2 * 1024 * 50
        assert one_way["details"]["seen_bytes"] == 2 * 65536 * 20
        assert binding["details"]["seen_bytes"] == 2 * 65536 * 10
        # layout.waiting = event, the local site's: what the workers' own ucxx does, too
        assert binding["details"]["progress_mode"] == "thread"
    for folder in campaign.glob("runs/*"):
        lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
        assert {line["answer"] for line in lines} == {"unchecked"}
        assert all(line["wall_s"] > 0 for line in lines)
        links = [json.loads(line) for line in (folder / "links.jsonl").read_text().splitlines()]
        assert sorted(link["count"] for link in links) == [10, 10, 40, 100, 100]
