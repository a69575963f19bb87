"""Is this the cluster that was planned? Every way in which it isn't has a message of its own."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.image import packages, packages_id, packages_in_manifest
from gpubench.node.proofs import (
    CheckError,
    binding_environment,
    check_moved,
    check_needed,
    check_packages,
    check_processes,
    check_protocol,
    check_transport,
    not_chosen,
    note_talk,
)
from gpubench.node.spec import RunSpec
from tests.node.specs_by_hand import run_spec

HALF = "f" * 64
SPEC = run_spec(
    protocol="ucx",
    node_half=HALF,
    env={"UCX_TLS": "tcp", "LD_LIBRARY_PATH": "/image"},
    expect_transport=["tcp"],
)
ADDED = {"UCX_TLS": "tcp", "UCX_MEMTYPE_CACHE": "n"}  # the second by the binding, when it is imported


def process(role: str = "worker", pid: int = 7, **changes: Any) -> dict[str, Any]:
    """What a process of the planned cluster says; what ``changes`` names that isn't there is of its UCX."""
    path = "/image/libucp.so.0"
    ucx = {
        "loaded": "1.19.0",
        "path": path,
        "env_at_start": {"UCX_TLS": "tcp"},
        "env": dict(ADDED),
        "planned_path": path,
    }
    said = {
        "role": role,
        "pid": pid,
        "host": "n0",
        "node_half": HALF,
        "affinity": [0, 1],
        "packages": "p1",
        "build_id": "",
        "versions": {},
    }
    of_ucx = {name: value for name, value in changes.items() if name not in said}
    return {**said, "ucx": {**ucx, **of_ucx}, **{name: changes[name] for name in changes if name in said}}


def cluster(**of_the_last: Any) -> list[dict[str, Any]]:
    return [process("scheduler", 5), process("worker", 6), process("worker", 7, **of_the_last)]


def refusal(spec: RunSpec, processes: list[dict[str, Any]]) -> str:
    with pytest.raises(CheckError) as caught:
        check_processes(spec, processes)
    return str(caught.value)


ELSEWHERE = "not from an archive: /home/me/checkout/gpubench/node/client.py"
TWO_LIBRARIES = "/image/libucp.so.0, /usr/lib/libucp.so.0.0.0"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"packages": "p2"}, "worker on n0 has other packages than scheduler on n0"),
        ({"node_half": ELSEWHERE}, f"worker (pid 7 on n0) imported node half {ELSEWHERE}, planned ffffffffffff"),
        ({"affinity": []}, "worker (pid 7 on n0) may run on no CPU"),
        (
            {"loaded": "1.17.0", "path": "/usr/lib/libucp.so.0"},
            "worker (pid 7 on n0) loaded UCX 1.17.0 from /usr/lib/libucp.so.0, planned 1.19.0",
        ),
        ({"loaded": "none", "path": ""}, "worker (pid 7 on n0) loaded UCX none, planned 1.19.0"),
        (
            {"path": "/usr/lib/libucp.so.0.0.0"},
            "worker (pid 7 on n0) loaded UCX from /usr/lib/libucp.so.0.0.0, planned /image/libucp.so.0",
        ),
        ({"path": TWO_LIBRARIES}, f"worker (pid 7 on n0) loaded UCX from {TWO_LIBRARIES}, planned /image/libucp.so.0"),
        ({"env_at_start": {}}, "worker (pid 7 on n0) started with no UCX_*, planned UCX_TLS=tcp"),
        (
            {"env_at_start": {"UCX_TLS": "tcp", "UCX_RNDV_THRESH": "1"}},
            "worker (pid 7 on n0) started with UCX_RNDV_THRESH=1 UCX_TLS=tcp, planned UCX_TLS=tcp",
        ),
        ({"env": {**ADDED, "UCX_TLS": "all"}}, "worker (pid 7 on n0) runs with UCX_TLS=all, planned tcp"),
        (
            {"env": {**ADDED, "UCX_MEMTYPE_CACHE": "y"}},
            "UCX_* differ: scheduler has UCX_MEMTYPE_CACHE=n UCX_TLS=tcp, worker has UCX_MEMTYPE_CACHE=y UCX_TLS=tcp",
        ),
    ],
)
def test_a_process_that_is_not_the_planned_one_is_named_with_what_differs(changes: dict[str, Any], said: str) -> None:
    assert refusal(SPEC, cluster(**changes)) == said


def test_where_the_loader_finds_the_library_by_itself_its_place_is_not_planned() -> None:
    check_processes(SPEC, cluster(path="/usr/lib/libucp.so.0.0.0", planned_path=""))


def test_an_image_that_was_changed_after_its_build_is_told_by_its_packages(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({"stack": {"packages": packages()}}))
    found = {**process("client"), "packages": packages_id()}
    check_packages(found, packages_in_manifest(str(path)))
    path.write_text(json.dumps({"stack": {"packages": {**packages(), "dask": "1999.1.0"}}}))
    with pytest.raises(CheckError, match=r"client on n0 finds packages .* the image was changed after its build"):
        check_packages(found, packages_in_manifest(str(path)))
    path.write_text("{}")
    for nothing in (str(path), str(tmp_path / "absent"), ""):
        assert packages_in_manifest(nothing) == ""
    check_packages(found, "")


def test_a_process_of_another_build_is_named() -> None:
    processes = [{**process, "build_id": "b1"} for process in cluster()]
    spec = dataclasses.replace(SPEC, build_id="b1")
    check_processes(spec, processes)
    processes[1]["build_id"] = "b2"
    assert refusal(spec, processes) == "worker (pid 6 on n0) runs in build b2, planned b1"


def test_the_planned_cluster_passes() -> None:
    check_processes(SPEC, cluster())
    assert binding_environment(cluster()[0]) == {"UCX_MEMTYPE_CACHE": "n"}


def test_any_library_under_tcp_is_wrong() -> None:
    tcp = run_spec(node_half=HALF)
    plain = {"env_at_start": {}, "env": {}}
    check_processes(tcp, [process(loaded="none", path="", **plain)])
    assert refusal(tcp, [process(**plain)]).endswith("loaded UCX 1.19.0 from /image/libucp.so.0, planned none")


OLD = {"dask_cuda": "v22.12.00"}  # as its __version__ reads


def test_a_gpu_worker_of_old_loads_the_images_ucx_over_tcp_too_and_no_other() -> None:
    tcp = run_spec(node_half=HALF, device="gpu", env={})
    plain = {"env_at_start": {}, "env": {}, "loaded": "none", "path": ""}
    scheduler = process("scheduler", **plain)
    loading = {"env_at_start": {}, "env": {"UCX_MEMTYPE_CACHE": "n"}}
    workers = [process(pid=pid, **loading) | {"versions": OLD} for pid in (6, 7)]
    check_processes(tcp, [scheduler, *workers])
    for versions in ({"dask_cuda": "23.12.00"}, {}):
        assert refusal(tcp, [scheduler, process(**loading) | {"versions": versions}]).endswith(
            "loaded UCX 1.19.0 from /image/libucp.so.0, planned none"
        )
    assert refusal(tcp, [process("scheduler", **loading) | {"versions": OLD}]).endswith("planned none")
    assert refusal(tcp, [scheduler, process(**{**loading, "loaded": "1.17.0"}) | {"versions": OLD}]).startswith(
        "worker (pid 7 on n0) loaded UCX 1.17.0"
    )
    workers[1]["ucx"]["env"] = {}
    assert refusal(tcp, [scheduler, *workers]) == (
        "UCX_* differ: worker on n0 has UCX_MEMTYPE_CACHE=n, worker on n0 has no UCX_*"
    )


def test_a_scheduler_without_the_workers_gpus_is_no_contradiction_but_workers_agree() -> None:
    by_gpus = {"env": ADDED | {"UCX_CUDA_COPY_MAX_REG_RATIO": "1.0"}}
    workers = [process(pid=6, **by_gpus), process(pid=7, **by_gpus)]
    check_processes(SPEC, [process("scheduler"), *workers, process("client")])
    check_processes(SPEC, [process("scheduler", **by_gpus), process(), process(), process("client")])
    other = {**process(), "host": "n1"}
    assert refusal(SPEC, [process("scheduler"), workers[0], other]) == (
        "UCX_* differ: worker on n0 has UCX_CUDA_COPY_MAX_REG_RATIO=1.0 UCX_MEMTYPE_CACHE=n UCX_TLS=tcp, "
        "worker on n1 has UCX_MEMTYPE_CACHE=n UCX_TLS=tcp"
    )
    planned = dataclasses.replace(SPEC, env={"UCX_TLS": "tcp", "UCX_CUDA_COPY_MAX_REG_RATIO": "0.5"})
    assert refusal(planned, [process("scheduler")]).startswith("scheduler (pid 7 on n0) started with UCX_TLS=tcp, pl")


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


def far(lane: str) -> dict[str, list[str]]:
    return {"inter-node": [lane]}


def test_the_transports_of_all_processes_are_found() -> None:
    lanes = {"scheduler": far("tcp/lo"), "w1": {"self": ["self/memory"], **far("tcp/lo")}, "w2": far("tcp/eth0")}
    assert check_transport(SPEC, lanes) == ["tcp"]
    either = run_spec(protocol="ucx", expect_transport=[])
    assert check_transport(either, {"w1": far("rc_mlx5/mlx5_0:1"), "w2": far("tcp/lo")}) == ["rc_mlx5", "tcp"]


@pytest.mark.parametrize(
    ("lanes", "said"),
    [
        ({"w1": far("tcp/lo"), "w2": {"intra-node": ["posix/memory"]}}, "UCX used posix, tcp, the site expects tcp"),
        ({"w1": {"self": ["self/memory"]}}, "UCX used none, the site expects tcp"),
        ({"w1": far("tcp/lo"), "w2": {}}, "UCX reported no lane in w2: which transport ran is unknown"),
    ],
)
def test_a_foreign_or_an_unknown_transport_is_named(lanes: dict[str, dict[str, list[str]]], said: str) -> None:
    with pytest.raises(CheckError) as caught:
        check_transport(SPEC, lanes)
    assert str(caught.value) == said


NEEDS = run_spec(
    device="gpu", protocol="ucx", need_transport={"same_node": ["cuda_ipc"], "between_nodes": ["rc_mlx5", "dc_mlx5"]}
)
WORKERS = {
    f"ucxx://{name}": {"name": name, "host": name[:2], "address": f"ucxx://{name}"} for name in ("n0a", "n0b", "n1a")
}
A, B, FAR = WORKERS
NVLINK = {"intra-node": ["cuda_ipc/cuda", "tcp/lo"], "self": ["self/memory"]}
INFINIBAND = {"inter-node": ["dc_mlx5/mlx5_0:1", "tcp/ib0"]}


@pytest.mark.parametrize(
    ("pair", "lanes", "said"),
    [
        ((A, B), {A: NVLINK, B: NVLINK}, ""),
        ((A, FAR), {A: {**NVLINK, **INFINIBAND}, FAR: INFINIBAND}, ""),
        # Of UCX before 1.15 nobody knows whose lane it is.
        ((A, FAR), {A: {"unknown": ["rc_mlx5/mlx5_0:1"]}, FAR: {"unknown": ["rc_mlx5/mlx5_0:1"]}}, ""),
        (
            (A, B),
            {A: NVLINK, B: {"intra-node": ["tcp/lo", "posix/memory"], "self": ["cuda_ipc/cuda"]}},
            "n0b on n0 sent and received by posix, tcp only, the site needs cuda_ipc on the same node "
            "(need_transport.same_node)",
        ),
        (
            (FAR, A),
            {A: {**NVLINK, "inter-node": ["tcp/ib0"], "intra-node": ["rc_mlx5/mlx5_0:1"]}, FAR: INFINIBAND},
            "n0a on n0 sent and received by tcp only, the site needs rc_mlx5 or dc_mlx5 between nodes "
            "(need_transport.between_nodes)",
        ),
        ((A, B), {A: {"self": ["self/memory"]}, B: NVLINK}, "n0a on n0 sent and received by no transport only"),
    ],
)
def test_workers_that_sent_each_other_data_have_a_transport_that_the_site_needs_there(
    pair: tuple[str, str], lanes: dict[str, dict[str, list[str]]], said: str
) -> None:
    talked: dict[str, list[str]] = {"same_node": [], "between_nodes": []}
    note_talk(talked, [pair, pair], list(WORKERS.values()))
    assert sorted(map(len, talked.values())) == [0, 2]
    check_needed(run_spec(protocol="ucx"), talked, WORKERS, lanes)
    if not said:
        check_needed(NEEDS, talked, WORKERS, lanes)
        return
    with pytest.raises(CheckError) as caught:
        check_needed(NEEDS, talked, WORKERS, lanes)
    assert str(caught.value).startswith(said)


def test_workers_on_the_cpu_need_no_transport_for_gpu_memory() -> None:
    lanes = {A: {"intra-node": ["posix/memory"]}, B: {"intra-node": ["posix/memory"]}}
    talked = {"same_node": [A, B], "between_nodes": []}
    check_needed(dataclasses.replace(NEEDS, device="cpu"), talked, WORKERS, lanes)
    with pytest.raises(CheckError, match="the site needs cuda_ipc on the same node"):
        check_needed(NEEDS, talked, WORKERS, lanes)


def test_a_needed_transport_that_ucx_has_and_does_not_choose_is_a_warning() -> None:
    """A version that chooses another one is what is measured, so its runs count."""
    talked = {"same_node": [A, B], "between_nodes": []}
    direct, staged = "cuda_ipc (zero-copy flushed write to remote)", "tcp (copy-in copy-out) through main memory"
    assert not_chosen(NEEDS, talked, [staged]) == [
        "UCX chose tcp for large messages, and none of need_transport.same_node (cuda_ipc)"
    ]
    assert not_chosen(NEEDS, talked, [direct, staged]) == []
    assert not_chosen(NEEDS, talked, []) == [], "UCX before 1.18 doesn't say"
    assert not_chosen(NEEDS, {"same_node": [], "between_nodes": []}, [staged]) == []
    assert not_chosen(dataclasses.replace(NEEDS, device="cpu"), talked, [staged]) == []


def test_bytes_that_were_not_seen_between_workers_or_moved_over_another_protocol_are_named() -> None:
    check_moved(SPEC, "merge", 1000, 1000, ["ucxx://127.0.0.1:1"])
    with pytest.raises(CheckError, match=r"^merge had to move 1000 bytes between workers, 999 were seen$"):
        check_moved(SPEC, "merge", 999, 1000, ["ucxx://127.0.0.1:1"])
    with pytest.raises(CheckError, match=r"speaks tcp, planned ucxx"):
        check_moved(SPEC, "merge", 5000, 1000, ["ucxx://127.0.0.1:1", "tcp://127.0.0.1:2"])
