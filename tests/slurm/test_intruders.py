"""Somebody on a host of the same network that is none of the job's gets into none of its processes."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator

import pytest

from gpubench.store.campaign import Campaign
from tests.node.test_admission import ANSWER, CLIENT, INTRUDER
from tests.slurm.campaigns import Login
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hosts import Host, until
from tests.slurm.test_campaigns import leave_no_process, running, until_running

pytestmark = [pytest.mark.system, pytest.mark.long]


@pytest.mark.parametrize(("protocol", "scheme"), [("tcp", "tcp"), ("ucx", "ucxx")])
def test_nobody_on_another_host_gets_into_a_run(protocol: str, scheme: str, slurm: SlurmCluster, login: Login) -> None:
    campaign = login.plan("--nodes", "2", "--protocol", protocol, reps=100_000)
    login.run("submit", campaign)
    until_running(login, campaign)
    nodes = slurm.hosts["n1"], slurm.hosts["n2"]
    until(
        lambda: all(len(python_listens(node)) >= count for node, count in zip(nodes, (3, 1), strict=True)),
        "the scheduler, the supervisor of rank 0, a worker on each node",
    )
    image = Campaign.open(campaign).plan.variants[0].image
    assert image is not None
    env = [f"{name}={value}" for name, value in (image.env | {"UCX_TLS": "tcp"}).items()]
    intruder, client = login.directory / "intruder.py", login.directory / "client.py"
    intruder.write_text(INTRUDER)
    client.write_text("\n".join(line for line in CLIENT.splitlines() if "admission" not in line))
    made = login.directory / "made"

    def visit(host: Host, port: int) -> str:
        """What the client prints that comes from host n3, after the intruder from there."""
        address = f"{scheme}://{host.address}:{port}"
        on(slurm.hosts["n3"], "env", *env, image.python, str(intruder), address, str(made))
        return on(slurm.hosts["n3"], "env", *env, image.python, str(client), address)

    for node in nodes:
        for port in python_listens(node):
            said = visit(node, port)
            assert not made.exists(), (node.name, port)
            assert ANSWER not in said, (node.name, port)
    assert running(campaign)
    login.run("cancel", campaign)
    leave_no_process(slurm)
    with open_scheduler(slurm.hosts["n1"], scheme, env, image.python) as port:
        visit(slurm.hosts["n1"], port)
        assert made.is_dir(), "the test's own test: an open scheduler runs the intruder's code"


def inside(host: Host, *words: str) -> list[str]:
    return ["nsenter", "--all", f"--target={host.init}", *words]


def on(host: Host, *words: str) -> str:
    done = subprocess.run(inside(host, *words), capture_output=True, text=True, check=False, timeout=120)
    return done.stdout


@contextlib.contextmanager
def open_scheduler(host: Host, scheme: str, env: list[str], python: str) -> Iterator[int]:
    """A scheduler that anybody may connect to, on the port that this yields."""
    words = ["-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--port", "8899", "--protocol", scheme]
    process = subprocess.Popen(inside(host, "env", *env, python, *words))
    try:
        until(lambda: 8899 in python_listens(host), "the scheduler")
        yield 8899
    finally:
        on(host, "pkill", "-KILL", "-f", "dask[_ ]scheduler")
        process.wait(60)


def python_listens(host: Host) -> list[int]:
    """Ports on which a Python of ours listens beyond the host itself; some call themselves ``dask worker``."""
    done = subprocess.run(
        ["nsenter", "--net", f"--target={host.init}", "ss", "-Htlnp"], capture_output=True, text=True, check=True
    )
    rows = [row.split() for row in done.stdout.splitlines() if re.search("python|dask", row)]
    return [int(row[3].rpartition(":")[2]) for row in rows if not re.match(r"127\.|\[::1\]", row[3])]
