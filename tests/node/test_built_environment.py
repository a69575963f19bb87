import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpubench.node import machine
from gpubench.node.spec import Deadlines
from gpubench.node.variables import process_environment, ucx_variables
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE
from tests.conftest import free_port
from tests.node.runners import Runner
from tests.node.specs_by_hand import run_spec

SHELL = {"PATH": "/bin", "LANG": "C.UTF-8", "HOME": "/root", "EDITOR": "vi", "SECRET_TOKEN": "s3cr3t"}


def built(tmp_path: Path, shell: dict[str, str] | None = None, **changes: Any) -> tuple[dict[str, str], list[str]]:
    spec = run_spec(**{"env_allow": ["PATH", "LANG", "TZ"], **changes})
    return process_environment(spec, SHELL if shell is None else shell, tmp_path, "mark")


def test_only_what_the_spec_allows_comes_from_the_shell(tmp_path: Path) -> None:
    env, warnings = built(tmp_path)
    assert (env["PATH"], env["LANG"]) == ("/bin", "C.UTF-8")
    assert not {"EDITOR", "SECRET_TOKEN", "TZ"} & set(env)
    assert warnings == []


def test_nothing_of_the_users_home_or_site_packages_is_seen(tmp_path: Path) -> None:
    env, _ = built(tmp_path)
    assert env["HOME"] == env["TMPDIR"] == str(tmp_path)
    assert env["PYTHONNOUSERSITE"] == "1"
    assert env[CLUSTER_VARIABLE] == "mark"


def test_a_user_whom_the_image_does_not_know_has_a_name_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """parsl calls ``getpass.getuser``; in a pod with user 1000: ``getpwuid(): uid not found: 1000``."""
    assert "USER" not in built(tmp_path)[0]
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 2)
    env, _ = built(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", "import getpass; print(getpass.getuser())"], env=env, capture_output=True, check=True
    )
    assert done.stdout == b"gpubench\n"
    assert built(tmp_path, {**SHELL, "USER": "me"}, env_allow=["USER"])[0]["USER"] == "me"


def test_the_host_of_a_pod_is_its_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen on Kubernetes 1.36.2: provenance had pods' names only, another one in each block."""
    env, _ = built(tmp_path, {**SHELL, "GPUBENCH_NODE_NAME": "node-a"})
    assert env["GPUBENCH_NODE_NAME"] == "node-a"
    monkeypatch.setenv("GPUBENCH_NODE_NAME", "node-a")
    assert machine.facts()["host"] == machine.host() == "node-a"
    monkeypatch.delenv("GPUBENCH_NODE_NAME")
    assert machine.host() == os.uname().nodename


@pytest.mark.parametrize(
    "name",
    [
        *("UCX_TLS", "UCX_LOG_LEVEL", "UCXPY_NON_BLOCKING_MODE", "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP"),
        *("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD"),
        *("CUDA_VISIBLE_DEVICES", "RAPIDS_NO_INITIALIZE", "NUMBA_NUM_THREADS"),
    ],
)
def test_what_would_change_a_benchmark_unseen_is_dropped_and_named_without_its_value(tmp_path: Path, name: str) -> None:
    env, warnings = built(tmp_path, {**SHELL, name: "from a login shell"})
    assert env.get(name) != "from a login shell"
    assert warnings == [f"dropped from the environment: {name}"]


@pytest.mark.parametrize(
    ("shell", "changes", "expected", "said"),
    [
        ({"UCX_B": "1", "DASK_A": "2", "UCX_A": "3"}, {}, {}, ["dropped from the environment: DASK_A, UCX_A, UCX_B"]),
        (
            {"UCX_TLS": "rc", "LD_LIBRARY_PATH": "/login", "PYTHONNOUSERSITE": "1"},
            {"env": {"UCX_TLS": "tcp", "LD_LIBRARY_PATH": "/image"}},
            {"UCX_TLS": "tcp", "LD_LIBRARY_PATH": "/image"},
            ["the run's own value was used instead of the environment's: LD_LIBRARY_PATH, UCX_TLS"],
        ),
        ({"UCX_TLS": "tcp"}, {"env": {"UCX_TLS": "tcp"}}, {"UCX_TLS": "tcp"}, []),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, {"env_allow": ["CUDA_VISIBLE_DEVICES"]}, {"CUDA_VISIBLE_DEVICES": "0,1"}, []),
        ({}, {}, {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}, []),  # as Dask's nanny sets them
        ({}, {"env": {"OMP_NUM_THREADS": "4"}}, {"OMP_NUM_THREADS": "4"}, []),
        ({}, {"protocol": "ucx", "env": {"UCX_LOG_LEVEL": "debug"}}, {"UCX_LOG_LEVEL": "debug"}, []),
    ],
)
def test_what_site_image_or_variant_set_beats_the_shell_and_us_and_every_difference_is_named_once(
    tmp_path: Path, shell: dict[str, str], changes: dict[str, Any], expected: dict[str, str], said: list[str]
) -> None:
    env, warnings = built(tmp_path, shell, **changes)
    assert {name: env[name] for name in expected} == expected
    assert warnings == said


def test_ucx_logs_into_the_scratch_directory_under_ucx_only(tmp_path: Path) -> None:
    under_ucx, _ = built(tmp_path, protocol="ucx")
    assert under_ucx["UCX_LOG_LEVEL"] == "info"
    assert under_ucx["UCX_LOG_FILE"] == f"{tmp_path}/ucx-%p.log"
    under_tcp, _ = built(tmp_path, protocol="tcp")
    assert not [name for name in under_tcp if name.startswith("UCX_")]


def test_the_variables_of_ucx_leave_out_those_that_only_make_it_log() -> None:
    found = ucx_variables(
        {"UCX_TLS": "tcp", "UCX_LOG_FILE": "x", "UCX_LOG_LEVEL": "info", "PATH": "/bin", "A_UCX_": "1"}
    )
    assert found == {"UCX_TLS": "tcp"}


CONNECT = """
import asyncio, sys
from distributed.comm import connect

async def try_it(address):
    try:
        comm = await connect(address)
    except OSError as error:
        print(error, flush=True)
    else:
        comm.abort()
        print("connected", flush=True)

print("tries", flush=True)
asyncio.run(try_it(sys.argv[1]))
"""
LISTEN = """
import asyncio, sys
from distributed.comm import listen

async def serve(address):
    async def stay(comm):
        await asyncio.sleep(600)

    await listen(address, stay)
    await asyncio.sleep(600)

asyncio.run(serve(sys.argv[1]))
"""


@pytest.mark.integration
@pytest.mark.parametrize(
    ("start_s", "said"), [(600.0, "connected\n"), (20.0, "Timed out trying to connect to ADDRESS after 0.5 s\n")]
)
def test_dask_tries_to_connect_as_long_as_a_run_may_take_to_start(start_s: float, said: str, tmp_path: Path) -> None:
    """Dask's own 30 s are half a second here, by a file of the user, which our variable beats."""
    env, _ = built(tmp_path, dict(os.environ), env_allow=["PATH"], deadlines=Deadlines(start_s=start_s))
    folder = tmp_path / ".config" / "dask"
    folder.mkdir(parents=True)
    (folder / "short.yaml").write_text("distributed: {comm: {timeouts: {connect: 500ms}}}\n")
    address = f"tcp://127.0.0.1:{free_port()}"
    with subprocess.Popen(
        [sys.executable, "-c", CONNECT, address], env=env, stdout=subprocess.PIPE, text=True
    ) as tries:
        assert tries.stdout
        assert tries.stdout.readline() == "tries\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            tries.wait(2)  # nobody listens yet
        with subprocess.Popen([sys.executable, "-c", LISTEN, address], env=env) as late:
            assert tries.stdout.read() == said.replace("ADDRESS", address)
            late.kill()


def test_what_the_profile_says_about_connecting_counts(tmp_path: Path) -> None:
    name = "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"
    assert built(tmp_path, deadlines=Deadlines(start_s=120.0))[0][name] == "120s"
    assert built(tmp_path, deadlines=Deadlines(start_s=120.0), env={name: "1h"})[0][name] == "1h"
    assert name not in built(tmp_path, deadlines=Deadlines(start_s=30.0))[0]


@pytest.mark.integration
def test_scheduler_worker_and_client_say_how_long_they_try_to_connect(tmp_path: Path) -> None:
    runner = Runner([sys.executable, "-I"], tmp_path)
    assert runner.run()[0] == 0
    assert {(one["role"], one["connect_timeout"]) for one in runner.provenance()["processes"]} == {
        (role, "60s") for role in ("scheduler", "worker", "client")
    }


def test_the_gpus_of_the_job_and_what_shares_them_come_from_the_shell_on_gpus_only(tmp_path: Path) -> None:
    shell = {"CUDA_VISIBLE_DEVICES": "2,3", "CUDA_MPS_PIPE_DIRECTORY": "/run/mps"}
    env, warnings = built(tmp_path, shell, device="gpu", workers_per_node=2)
    assert {name: env[name] for name in shell} == shell
    assert (env["CUDA_DEVICE_ORDER"], warnings) == ("PCI_BUS_ID", [])
    fewer, warnings = built(tmp_path, shell, device="gpu", workers_per_node=1)
    assert fewer["CUDA_VISIBLE_DEVICES"] == "2"
    assert warnings == ["the run's own value was used instead of the environment's: CUDA_VISIBLE_DEVICES"]
    named = {"CUDA_VISIBLE_DEVICES": "7,5,3,1", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
    of_site, _ = built(tmp_path, shell, device="gpu", workers_per_node=2, env=named)
    assert {name: of_site[name] for name in named} == {**named, "CUDA_VISIBLE_DEVICES": "7,5"}
    env, warnings = built(tmp_path, shell)
    assert not set(shell) & set(env)
    assert warnings == ["dropped from the environment: CUDA_MPS_PIPE_DIRECTORY, CUDA_VISIBLE_DEVICES"]
