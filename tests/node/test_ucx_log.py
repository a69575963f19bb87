"""What UCX says in its log, in lines as it wrote them."""

# ruff: noqa: E501 - log lines are as long as they are

import shutil
import subprocess
from pathlib import Path

import pytest

from gpubench.node.ucx_log import carriers, every, lanes, transports, unused
from gpubench.node.workloads.ucx import first
from tests.conftest import need
from tests.node.runners import printed

INTER = "[1795185083.361571] [vm:14310:0]      ucp_worker.c:1903 UCX  INFO    ucp_context_0 inter-node cfg#0 tag(tcp/lo)  rma_am(tcp/lo)  am(tcp/lo)  stream(tcp/lo)"
INTRA = "[1795185083.373019] [vm:14310:0]      ucp_worker.c:1888 UCX  INFO  ucp_context_0 intra-node cfg#1 tag(tcp/lo)  rma_am(tcp/lo)  am(tcp/lo)  stream(tcp/lo)"
OWN = "[1795185083.373100] [vm:14310:0]      ucp_worker.c:1888 UCX  INFO  ucp_context_0 self cfg#2 tag(self/memory)  am(self/memory)"
RAILS = "[1701292112.829711] [n1:162239:0]      ucp_worker.c:1855 UCX  INFO    0x100b240 inter-node cfg#3 tag(rc_mlx5/mlx5_0:1 rc_mlx5/mlx5_1:1 cuda_copy/cuda)  rma(rc_mlx5/mlx5_0:1)"
# UCX 1.12, from an issue of that time.
OLD = "[1645203303.759862] [host2:43:0]      ucp_worker.c:1877 UCX  INFO  ep_cfg[2]: tag(self/memory0 knem/memory cuda_copy/cuda rc_mlx5/mlx5_0:1)"
OLDER = "[1645203303.759862] [host2:43:0]      ucp_worker.c:1779 UCX  INFO  ep_cfg[1]: tag(posix/memory cma/memory); rma(rc_mlx5/mlx5_0:1);"
VERSION = "[1795184933.508329] [vm:13524:0]     ucp_context.c:2339 UCX  INFO  Version 1.19.0 (loaded from /images/ucx/libucp.so.0)"
SETTINGS = "[1795184933.521659] [vm:13524:0]          parser.c:2368 UCX  INFO  UCX_* env variables: UCX_NET_DEVICES=lo UCX_TLS=tcp"
UNUSED = "[1795184933.521649] [vm:13524:0]          parser.c:2359 UCX  WARN  unused environment variable: UCX_X (maybe: UCX_Y?)"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (INTER, ["tcp/lo"]),
        (INTRA, ["tcp/lo"]),
        (OWN, ["self/memory"]),
        (RAILS, ["cuda_copy/cuda", "rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_1:1"]),
        (OLD, ["cuda_copy/cuda", "knem/memory", "rc_mlx5/mlx5_0:1", "self/memory0"]),
        (OLDER, ["cma/memory", "posix/memory", "rc_mlx5/mlx5_0:1"]),
    ],
)
def test_every_lane_of_a_configuration_is_found_in_old_and_new_logs(log: str, expected: list[str]) -> None:
    assert every(lanes(log)) == expected


def test_lanes_are_told_apart_by_who_the_peer_is_where_ucx_says_it() -> None:
    assert lanes("\n".join([INTER, INTRA, OWN, RAILS, OLDER])) == {
        "inter-node": ["cuda_copy/cuda", "rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_1:1", "tcp/lo"],
        "intra-node": ["tcp/lo"],
        "self": ["self/memory"],
        "unknown": ["cma/memory", "posix/memory", "rc_mlx5/mlx5_0:1"],
    }


@pytest.mark.parametrize("log", ["", VERSION, SETTINGS, UNUSED, "tag(tcp/lo)", INTER.split("cfg#", maxsplit=1)[0]])
def test_a_log_without_a_configuration_reports_no_lane(log: str) -> None:
    assert lanes(log) == {}


def test_of_a_line_that_is_cut_off_the_last_word_does_not_count() -> None:
    """UCX's buffer holds 256 characters: UCS_STRING_BUFFER_ONSTACK(strb, 256) in ucp_worker.c of 1.14 to 1.22."""
    assert every(lanes(RAILS[: RAILS.index(" cuda_copy")])) == ["rc_mlx5/mlx5_0:1"]
    assert every(lanes(INTER[: INTER.index("  stream") + 10])) == ["tcp/lo"]
    rails = " ".join(f"rc_mlx5/mlx5_{rail}:1" for rail in range(16))
    line = RAILS.partition("0x100b240")[2].partition("tag(")[0] + f"tag({rails})"
    cut = RAILS.partition("0x100b240")[0] + line[:256]
    assert every(lanes(cut)) == sorted(f"rc_mlx5/mlx5_{rail}:1" for rail in range(13))


def test_a_lane_to_itself_is_no_transport() -> None:
    assert transports(every(lanes("\n".join([INTER, OWN, RAILS])))) == ["cuda_copy", "rc_mlx5", "tcp"]
    assert transports(every(lanes(OWN))) == []
    assert transports([]) == []


# ucx_perftest -t tag_bw with UCX_PROTO_INFO=y, between two processes of one machine: 1.19.0, then 1.22.0.
TABLE_OF_1_19 = """
[1795768247.591372] [vm:8499 :0]   +---------------------------+----------------------------------------------------------+
[1795768247.591373] [vm:8499 :0]   | perftest intra-node cfg#0 | tagged message by ucp_tag_send* from host memory         |
[1795768247.591374] [vm:8499 :0]   +---------------------------+-------------------------------------------+--------------+
[1795768247.591375] [vm:8499 :0]   |                     0..92 | eager short                               | posix/memory |
[1795768247.591375] [vm:8499 :0]   |                  93..5345 | eager copy-in copy-out                    | posix/memory |
[1795768247.591375] [vm:8499 :0]   |                 5346..inf | (?) rendezvous zero-copy read from remote | cma/memory   |
[1795768247.591376] [vm:8499 :0]   +---------------------------+-------------------------------------------+--------------+
"""
TABLE_OF_1_22 = """
[1795768249.251798] [vm:8530 :0]   +-----------+-------------------------------------------+--------------+
[1795768249.251798] [vm:8530 :0]   | perftest intra-node cfg#0                                            |
[1795768249.251798] [vm:8530 :0]   | tagged message by ucp_tag_send* from host memory                     |
[1795768249.251798] [vm:8530 :0]   +-----------+-------------------------------------------+--------------+
[1795768249.251798] [vm:8530 :0]   |   Range   |                Description                |    Config    |
[1795768249.251798] [vm:8530 :0]   +-----------+-------------------------------------------+--------------+
[1795768249.251798] [vm:8530 :0]   |     0..92 | eager short                               | posix/memory |
[1795768249.251798] [vm:8530 :0]   | 5029..inf | (?) rendezvous zero-copy read from remote | cma/memory   |
[1795768249.251798] [vm:8530 :0]   +-----------+-------------------------------------------+--------------+
"""


# A worker and the handshake of its connections, which the binding sends as a stream: 1.22.0, then 1.18.0.
STREAM = """
[1795957769.731174] [vm:10480:1]   | ucp_context_0 inter-node cfg#4                             |
[1795957769.731174] [vm:10480:1]   | stream message by ucp_stream_send* from host memory        |
[1795957769.731174] [vm:10480:1]   | 16369..inf | multi-frag stream copy-in copy-out   | tcp/lo |
"""
STREAM_OF_1_18 = """
[1795957804.583580] [vm:10777:1]   | ucp_context_0 inter-node cfg#4 | (null) from host memory                     |
[1795957804.583581] [vm:10777:1]   |                         0..inf | multi-frag stream copy-in copy-out | tcp/lo |
"""


@pytest.mark.parametrize("table", [STREAM, STREAM_OF_1_18])
def test_the_handshake_of_a_connection_is_no_large_message(table: str) -> None:
    assert carriers(table, "cpu") == []
    assert carriers(TABLE_OF_1_22 + table, "cpu") == ["cma (zero-copy read from remote)"]


# Two workers on one H100, UCX 1.22.0, driver 580: with cuda_ipc, and without it.
TABLES_OF_GPU = """
[1795770700.1] [vm:700 :0]   +------------+--------------------------------------------------+---------------+
[1795770700.1] [vm:700 :0]   | ucp_context_0 intra-node cfg#4                                                |
[1795770700.1] [vm:700 :0]   | tagged message by ucp_tag_send* from cuda/GPU0                                |
[1795770700.1] [vm:700 :0]   +------------+--------------------------------------------------+---------------+
[1795770700.1] [vm:700 :0]   |   Range    |                   Description                    |    Config     |
[1795770700.1] [vm:700 :0]   +------------+--------------------------------------------------+---------------+
[1795770700.1] [vm:700 :0]   |          0 | eager short                                      | tcp/lo        |
[1795770700.1] [vm:700 :0]   |    1..8184 | eager copy-in copy-out                           | tcp/lo        |
[1795770700.1] [vm:700 :0]   | 8185..8191 | multi-frag eager copy-in copy-out                | tcp/lo        |
[1795770700.1] [vm:700 :0]   |    8K..inf | (?) rendezvous zero-copy flushed write to remote | cuda_ipc/cuda |
[1795770700.1] [vm:700 :0]   +------------+--------------------------------------------------+---------------+
[1795770700.1] [vm:700 :0]   | ucp_context_0 intra-node cfg#4                    |
[1795770700.1] [vm:700 :0]   | rendezvous data fetch into host memory from host  |
[1795770700.1] [vm:700 :0]   |      0 | no data fetch                   |        |
[1795770700.1] [vm:700 :0]   | 1..inf | (?) fragmented copy-in copy-out | tcp/lo |
"""


def test_what_ucx_chose_for_messages_between_gpus_is_read() -> None:
    assert carriers(TABLES_OF_GPU, "gpu") == ["cuda_ipc (zero-copy flushed write to remote)"]
    copied = TABLES_OF_GPU.replace("zero-copy flushed write to remote | cuda_ipc/cuda |", "copy-in copy-out | tcp/lo |")
    assert carriers(copied, "gpu") == ["tcp (copy-in copy-out) through main memory"]
    assert carriers(copied, "cpu") == ["tcp (fragmented copy-in copy-out)"]


# A rendezvous between GPUs, put together from proto.c:106, proto_debug.c:316 and rndv_mtype.inl:185 of UCX 1.22.0.
RENDEZVOUS = """
[1795770700.1] [vm:700 :0]   | ucp_context_0 inter-node cfg#5                                                |
[1795770700.1] [vm:700 :0]   | {operation} |
[1795770700.1] [vm:700 :0]   +------------+--------------------------------------------------+---------------+
[1795770700.1] [vm:700 :0]   |    1..512K | {small} | rc_mlx5/mlx5_0:1 |
[1795770700.1] [vm:700 :0]   |  512K..inf | {large} | 50% on rc_mlx5/mlx5_0:1 and 50% on rc_mlx5/mlx5_1:1 |
"""
FETCH, SEND = (
    "rendezvous data fetch into cuda/GPU0 from cuda/dev[1]",
    "rendezvous data send from cuda/GPU0 to cuda/dev[1]",
)
DIRECT, STAGED = "zero-copy read from remote", "pipeline read from remote, cuda_copy, frag host"
STAGED_BY = "rc_mlx5 (pipeline read from remote, cuda_copy) through main memory"


@pytest.mark.parametrize(
    ("operation", "large", "found"),
    [
        (FETCH, DIRECT, [f"rc_mlx5 ({DIRECT})"]),
        (FETCH, STAGED, [STAGED_BY]),
        (FETCH.replace("fetch", "fetch(multi)"), STAGED, [STAGED_BY]),
        (FETCH, STAGED.replace("frag host", "frag cuda"), ["rc_mlx5 (pipeline read from remote, cuda_copy)"]),
        (SEND, "zero-copy fenced write to remote", ["rc_mlx5 (zero-copy fenced write to remote)"]),
        (
            SEND,
            "pipeline cuda_copy, fenced write to remote, frag host",
            ["rc_mlx5 (pipeline cuda_copy, fenced write to remote) through main memory"],
        ),
        # As much as UCX before 1.20 has room for, of one that ends with ``frag cuda``.
        (
            FETCH,
            "(?) pipeline zero-copy fenced write to remote, cuda_copy, frag",
            ["rc_mlx5 (pipeline zero-copy fenced write to remote, cuda_copy)"],
        ),
        ("rendezvous data fetch into host memory from cuda/dev[1]", STAGED, []),
        ("rendezvous data send from host memory to cuda/dev[1]", STAGED, []),
    ],
)
def test_a_gpu_s_data_that_goes_through_main_memory_is_told_from_data_that_goes_directly(
    operation: str, large: str, found: list[str]
) -> None:
    table = RENDEZVOUS.format(operation=operation, small="copy-in copy-out", large=large)
    assert carriers(table, "gpu") == found


def test_what_a_process_chose_anew_stands_beside_what_its_peer_was_expected_to_do() -> None:
    """The lanes are there, and the GPU can't open the other's memory (uct_cuda_ipc_rkey_unpack, cuda_ipc_md.c:448)."""
    anew = RENDEZVOUS.format(operation=FETCH, small="copy-in copy-out", large=STAGED)
    assert carriers(TABLES_OF_GPU + anew, "gpu") == ["cuda_ipc (zero-copy flushed write to remote)", STAGED_BY]


@pytest.mark.parametrize("table", [TABLE_OF_1_19, TABLE_OF_1_22])
def test_what_ucx_chose_for_the_largest_messages_from_the_devices_memory_is_read(table: str) -> None:
    assert carriers(INTRA + table, "cpu") == ["cma (zero-copy read from remote)"]
    assert carriers(INTRA + table, "gpu") == []
    assert carriers(INTRA, "cpu") == []


def test_the_planned_library_is_the_first_that_the_search_leads_to(tmp_path: Path) -> None:
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
    (tmp_path / "c" / "libucp.so.0").touch()
    (tmp_path / "b" / "libucp.so.0.0.0").touch()
    (tmp_path / "b" / "libucp.so.0").symlink_to("libucp.so.0.0.0")
    search = ":".join(["", *(str(tmp_path / folder) for folder in ("a", "b", "c"))])
    assert first(search) == str(tmp_path / "b" / "libucp.so.0.0.0")
    assert first(str(tmp_path / "a")) == first("") == ""


LOADED = "from gpubench.node.workloads.ucx import loaded; print(loaded())"


def test_a_process_without_ucx_says_none() -> None:
    assert printed(LOADED) == "{'version': 'none', 'path': ''}\n"


def test_the_version_is_what_the_mapped_library_says_of_itself(tmp_path) -> None:
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    need(compiler is not None, "a C compiler, to make a libucp.so")
    source = tmp_path / "ucp.c"
    source.write_text('const char *ucp_get_version_string(void) { return "1.14.1 revision abc"; }')
    library = tmp_path / "libucp.so.0"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True, timeout=150)
    said = printed(f"import ctypes; ctypes.CDLL({str(library)!r}); {LOADED}")
    assert said == str({"version": "1.14.1", "path": str(library)}) + "\n"


def test_what_ucx_does_not_read_is_found_with_the_name_that_it_suggests() -> None:
    one = UNUSED.replace("variable:", "variables:").replace(
        "UCX_X (maybe: UCX_Y?)", "UCX_A; UCX_TSL (maybe: UCX_TLS?); UCX_B"
    )
    assert unused("\n".join([VERSION, UNUSED, one, SETTINGS, INTER])) == {
        "UCX_X": "UCX_Y",
        "UCX_A": "",
        "UCX_TSL": "UCX_TLS",
        "UCX_B": "",
    }
    assert unused("\n".join([VERSION, SETTINGS, INTER])) == {}
