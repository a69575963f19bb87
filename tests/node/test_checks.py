"""Is this the cluster that was planned? Every way in which it isn't has a message of its own."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest

from gpubench.node.checks import (
    CheckError,
    binding_environment,
    check_moved,
    check_processes,
    check_protocol,
    check_transport,
)
from gpubench.spec import RunSpec
from tests.node.specs_by_hand import run_spec

HALF = "f" * 64
SPEC = run_spec(
    protocol="ucx",
    node_half=HALF,
    env={"UCX_TLS": "tcp", "LD_LIBRARY_PATH": "/image"},
    variant_env=["UCX_TLS"],
    expect_transport=["tcp"],
)
ADDED = {"UCX_TLS": "tcp", "UCX_MEMTYPE_CACHE": "n"}  # the second by the binding, when it is imported


def process(role: str = "worker", pid: int = 7, **ucx: Any) -> dict[str, Any]:
    found = {"loaded": "1.19.0", "path": "/image/libucp.so.0", "env_at_start": {"UCX_TLS": "tcp"}, "env": dict(ADDED)}
    return {
        "role": role,
        "pid": pid,
        "host": "n0",
        "node_half": HALF,
        "affinity": [0, 1],
        "ucx": {**found, **ucx},
        "packages": "p1",
        "build_id": "",
    }


def cluster(**of_the_last: Any) -> list[dict[str, Any]]:
    return [process("scheduler", 5), process("worker", 6), process("worker", 7, **of_the_last)]


def refusal(spec: RunSpec, processes: list[dict[str, Any]]) -> str:
    with pytest.raises(CheckError) as caught:
        check_processes(spec, processes)
    return str(caught.value)


def test_a_process_with_other_packages_is_named() -> None:
    processes = cluster()
    processes[2]["packages"] = "p2"
    assert refusal(SPEC, processes) == "worker on n0 has other packages than scheduler on n0"


def test_a_process_of_another_build_is_named() -> None:
    processes = [{**process, "build_id": "b1"} for process in cluster()]
    spec = dataclasses.replace(SPEC, build_id="b1")
    check_processes(spec, processes)
    processes[1]["build_id"] = "b2"
    assert refusal(spec, processes) == "worker (pid 6 on n0) runs in build b2, planned b1"


def test_the_planned_cluster_passes() -> None:
    check_processes(SPEC, cluster())
    assert binding_environment(cluster()[0]) == {"UCX_MEMTYPE_CACHE": "n"}


def test_a_wrong_library_names_process_version_and_path() -> None:
    assert refusal(SPEC, cluster(loaded="1.17.0", path="/usr/lib/libucp.so.0")) == (
        "worker (pid 7 on n0) loaded UCX 1.17.0 from /usr/lib/libucp.so.0, planned 1.19.0"
    )


def test_no_library_under_ucx_is_wrong() -> None:
    assert refusal(SPEC, cluster(loaded="none", path="")) == "worker (pid 7 on n0) loaded UCX none, planned 1.19.0"


def test_any_library_under_tcp_is_wrong() -> None:
    tcp = run_spec(node_half=HALF)
    plain = {"env_at_start": {}, "env": {}}
    check_processes(tcp, [process(loaded="none", path="", **plain)])
    assert refusal(tcp, [process(**plain)]).endswith("loaded UCX 1.19.0 from /image/libucp.so.0, planned none")


def test_a_gpu_worker_inherits_what_the_binding_set_in_its_parent_and_nothing_else() -> None:
    gpu = dataclasses.replace(SPEC, device="gpu")
    check_processes(gpu, cluster(env_at_start=ADDED))
    started = "worker (pid 7 on n0) started with"
    assert refusal(SPEC, cluster(env_at_start=ADDED)).startswith(f"{started} UCX_MEMTYPE_CACHE=n UCX_TLS=tcp, planned")
    more = ADDED | {"UCX_RNDV_THRESH": "1"}
    assert refusal(gpu, cluster(env_at_start=more, env=more)).startswith(f"{started} UCX_MEMTYPE_CACHE=n UCX_RNDV_THR")
    other = ADDED | {"UCX_MEMTYPE_CACHE": "y"}
    assert refusal(gpu, cluster(env_at_start=other, env=other)).startswith(f"{started} UCX_MEMTYPE_CACHE=y")
    assert refusal(gpu, cluster(env_at_start={"UCX_MEMTYPE_CACHE": "n"})).endswith("planned UCX_TLS=tcp")


def test_a_setting_that_did_not_arrive_or_was_not_planned_is_named() -> None:
    assert refusal(SPEC, cluster(env_at_start={})) == "worker (pid 7 on n0) started with no UCX_*, planned UCX_TLS=tcp"
    more = {"UCX_TLS": "tcp", "UCX_RNDV_THRESH": "1"}
    assert refusal(SPEC, cluster(env_at_start=more)) == (
        "worker (pid 7 on n0) started with UCX_RNDV_THRESH=1 UCX_TLS=tcp, planned UCX_TLS=tcp"
    )


def test_a_setting_of_the_variant_that_does_not_hold_any_more_is_named() -> None:
    assert refusal(SPEC, cluster(env={**ADDED, "UCX_TLS": "all"})) == (
        "worker (pid 7 on n0) runs with UCX_TLS=all, the variant says tcp"
    )


def test_processes_that_differ_in_what_the_binding_added_are_named() -> None:
    assert refusal(SPEC, cluster(env={**ADDED, "UCX_MEMTYPE_CACHE": "y"})) == (
        "UCX_* differ: scheduler has UCX_MEMTYPE_CACHE=n UCX_TLS=tcp, worker has UCX_MEMTYPE_CACHE=y UCX_TLS=tcp"
    )


def test_another_node_half_is_named() -> None:
    processes = cluster()
    processes[1]["node_half"] = "not from an archive: /home/me/checkout/gpubench/node/probe.py"
    assert refusal(SPEC, processes) == (
        "worker (pid 6 on n0) imported node half "
        "not from an archive: /home/me/checkout/gpubench/node/probe.py, planned ffffffffffff"
    )


def test_a_process_that_may_run_nowhere_is_named() -> None:
    processes = cluster()
    processes[2]["affinity"] = []
    assert refusal(SPEC, processes) == "worker (pid 7 on n0) may run on no CPU"


def test_a_check_changes_nothing() -> None:
    processes = cluster()
    before = copy.deepcopy(processes)
    check_processes(SPEC, processes)
    assert processes == before


@pytest.mark.parametrize(
    ("protocol", "binding", "name"), [("tcp", "ucxx", "tcp"), ("ucx", "ucxx", "ucxx"), ("ucx", "ucx-py", "ucx")]
)
def test_dask_calls_the_protocol_by_the_binding(protocol: str, binding: str, name: str) -> None:
    spec = run_spec(protocol=protocol, binding=binding)
    assert spec.scheme == name
    check_protocol(spec, [f"{name}://127.0.0.1:1", f"{name}://127.0.0.1:2"])


def test_an_address_of_another_protocol_is_named() -> None:
    with pytest.raises(CheckError, match=r"^tcp://127\.0\.0\.1:2 speaks tcp, planned ucxx \(protocol ucx\)$"):
        check_protocol(SPEC, ["ucxx://127.0.0.1:1", "tcp://127.0.0.1:2"])


def test_the_transports_of_all_processes_are_found() -> None:
    lanes = {"scheduler": ["tcp/lo"], "w1": ["self/memory", "tcp/lo"], "w2": ["tcp/eth0", "tcp/lo"]}
    assert check_transport(SPEC, lanes) == ["tcp"]
    either = run_spec(protocol="ucx", expect_transport=[])
    assert check_transport(either, {"w1": ["rc_mlx5/mlx5_0:1"], "w2": ["tcp/lo"]}) == ["rc_mlx5", "tcp"]


def test_a_foreign_transport_is_named() -> None:
    with pytest.raises(CheckError, match=r"^UCX used posix, tcp, the site expects tcp$"):
        check_transport(SPEC, {"w1": ["tcp/lo"], "w2": ["posix/memory"]})


def test_a_lane_to_itself_alone_is_not_the_expected_transport() -> None:
    with pytest.raises(CheckError, match=r"^UCX used none, the site expects tcp$"):
        check_transport(SPEC, {"w1": ["self/memory"]})


def test_a_process_without_a_lane_leaves_the_transport_unknown() -> None:
    message = "^UCX reported no lane in w2: which transport ran is unknown$"
    with pytest.raises(CheckError, match=message):
        check_transport(SPEC, {"w1": ["tcp/lo"], "w2": []})
    with pytest.raises(CheckError, match=r"no lane in any process"):
        check_transport(SPEC, {})


def test_under_tcp_there_is_no_transport_to_look_for() -> None:
    assert check_transport(run_spec(), {}) == []


def test_bytes_that_were_not_seen_between_workers_are_named() -> None:
    check_moved(SPEC, "merge", 1000, 1000, ["ucxx://127.0.0.1:1"])
    with pytest.raises(CheckError, match=r"^merge had to move 1000 bytes between workers, 999 were seen$"):
        check_moved(SPEC, "merge", 999, 1000, ["ucxx://127.0.0.1:1"])


def test_bytes_that_moved_over_another_protocol_do_not_count() -> None:
    with pytest.raises(CheckError, match=r"speaks tcp, planned ucxx"):
        check_moved(SPEC, "merge", 5000, 1000, ["ucxx://127.0.0.1:1", "tcp://127.0.0.1:2"])


def test_a_workload_that_need_not_move_anything_passes() -> None:
    check_moved(SPEC, "tasks", 0, 0, [])
