"""The real Podman in Docker's place."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docker.context import ContextAPI
from gpubench.errors import MissingToolError, SchedulerError
from gpubench.images.docker.build import BuildOutcome, build_all
from gpubench.images.docker.engine import Engine
from gpubench.images.docker.registry import Registry
from tests.conftest import ROOT, in_long_tests
from tests.docker.daemon import DockerDaemon, PodmanService, RegistryServer, debian_base
from tests.docker.images import ARCHITECTURE, build_one, dockerfile, job, log_in, remove, tags
from tests.docker.test_builds import FRONT, LONG, sleeping, wait_for

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def podman(registry: RegistryServer, locked_registry: RegistryServer) -> Iterator[PodmanService]:
    with PodmanService(registry.host, locked_registry.host) as podman:
        yield podman


@pytest.fixture(scope="module")
def podman_base(podman: PodmanService) -> str:
    return debian_base(podman)


@pytest.fixture
def engine(podman: PodmanService, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    for name, value in {**podman.environment, "DOCKER_HOST": podman.host}.items():
        monkeypatch.setenv(name, value)
    with Engine.connect() as engine:
        yield engine


def test_the_digest_is_the_registrys_and_not_podmans_own(
    engine: Engine, podman_base: str, registry: RegistryServer, tmp_path: Path
) -> None:
    base = engine.pin(podman_base, ARCHITECTURE)
    assert base.startswith("sha256:")  # although Podman has a digest of every image, pushed or not
    place = f"{registry.host}/podman/ucx"
    outcome = build_one(job("v1.14.x", dockerfile(base), push=place), tmp_path)
    assert outcome.error is None
    found = Registry(place).resolve("ucx-py-v1.14.x-20261121", "x86_64")
    assert (outcome.digest, outcome.image) == (found.digest, found.config)
    assert found.labels["io.gpubench.test.name"] == "v1.14.x"
    assert Registry(place).last_layer_file(found, "/gpubench/manifest.json") == b'{"build_id": "b1"}'
    remove(engine, outcome.image)
    assert engine.pull(found.reference) == outcome.image
    assert engine.read_file(outcome.image, "/gpubench/manifest.json") == b'{"build_id": "b1"}'


@pytest.mark.parametrize("program", ["docker", "podman"])
def test_a_login_is_used(
    program: str, *, engine: Engine, podman: PodmanService, docker_home: Path, locked_registry: RegistryServer
) -> None:
    place = f"{locked_registry.host}/{program}/ucx"
    image = build_one(job("login", {"Dockerfile": b"FROM scratch\nCOPY Dockerfile /\n"}), docker_home).image
    with pytest.raises(SchedulerError, match="refuses to push"):
        engine.push(image, place, "v1")
    log_in(docker_home, locked_registry.host)
    if program == "podman":
        (docker_home / "config.json").rename(podman.environment["REGISTRY_AUTH_FILE"])
    assert engine.push(image, place, "v1").startswith("sha256:")


@pytest.mark.parametrize("how", [signal.SIGKILL, *in_long_tests(signal.SIGTERM, signal.SIGINT)])
def test_a_killed_front_end_leaves_no_tag_and_no_process(
    how: signal.Signals, engine: Engine, podman: PodmanService, podman_base: str, tmp_path: Path
) -> None:
    before = tags(podman)
    command = [sys.executable, "-c", FRONT, podman_base, str(tmp_path), LONG]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as front:
        wait_for(lambda: len(sleeping()) == 2)
        front.send_signal(how)
    wait_for(lambda: not sleeping())
    assert tags(podman) == before


def without_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker's default socket leads nowhere, also on a machine that has Docker."""
    monkeypatch.setattr(ContextAPI, "kwargs_from_context", lambda: {"base_url": "unix:///nonexistent/docker.sock"})


def test_where_docker_does_not_answer_a_service_of_podman_is_used_as_long_as_needed(
    podman: PodmanService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_docker(monkeypatch)
    for name, value in podman.environment.items():
        monkeypatch.setenv(name, value)
    with Engine.connect() as engine:
        socket = Path(engine.address.removeprefix("unix://"))
        outcomes: list[BuildOutcome] = []
        build_all(engine, [job("own", {"Dockerfile": b"FROM scratch\nCOPY Dockerfile /\n"})], tmp_path, outcomes.append)
        assert engine.has(outcomes[0].image)
        assert socket.is_socket()
    assert not socket.exists()
    serving = subprocess.run(["pgrep", "-f", f"service .*{socket}"], check=False)
    assert serving.returncode == 1
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")  # an engine that is named is not replaced
    with pytest.raises(MissingToolError, match="Docker doesn't answer at unix:///nonexistent"):
        Engine.connect()


def test_podman_that_does_not_start_is_one_line(
    podman: PodmanService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = tmp_path / "storage.conf"
    storage.write_text(f'[storage]\ndriver = "no-such-driver"\nrunroot = "{tmp_path}"\ngraphroot = "{tmp_path}"\n')
    without_docker(monkeypatch)
    for name, value in {**podman.environment, "CONTAINERS_STORAGE_CONF": str(storage)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MissingToolError, match=r"podman doesn't start \(.*no-such-driver"):
        Engine.connect()


def test_docker_without_buildx_builds_too(
    daemon: DockerDaemon, base: str, registry: RegistryServer, *, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpubench.images.docker.build._BUILDX", "no-such-buildx")
    monkeypatch.setenv("DOCKER_HOST", daemon.host)
    place = f"{registry.host}/classic/ucx"
    outcome = build_one(job("classic", dockerfile(base, "RUN echo word > /word"), push=place), tmp_path)
    assert outcome.error is None
    assert outcome.digest == Registry(place).resolve("ucx-py-classic-20261121", "x86_64").digest
    failed = build_one(job("bad", dockerfile(base, "RUN exit 3")), tmp_path)
    assert "returned a non-zero code: 3); log: " in str(failed.error)
