"""One private engine and one private registry for all tests; see ``daemon.py`` for others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.images.docker.engine import Engine
from tests.cli.campaigns import nothing_left
from tests.docker.daemon import DockerDaemon, RegistryServer, debian_base


@pytest.fixture(scope="session")
def daemon() -> Iterator[DockerDaemon]:
    with DockerDaemon() as daemon:
        yield daemon


@pytest.fixture(scope="session")
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as registry:
        yield registry


@pytest.fixture(scope="session")
def locked_registry() -> Iterator[RegistryServer]:
    """Only for USER with PASSWORD."""
    with RegistryServer(password=True) as registry:
        yield registry


@pytest.fixture(scope="session")
def base(daemon: DockerDaemon) -> str:
    return debian_base(daemon)


@pytest.fixture(autouse=True)
def docker_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty Docker configuration: a test must never see the user's logins."""
    home = tmp_path / "docker-config"
    home.mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(home))
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def engine(daemon: DockerDaemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setenv("DOCKER_HOST", daemon.host)
    with Engine.connect() as engine:
        yield engine
    with contextlib.closing(daemon.client()) as client:
        nothing_left(lambda: client.api.containers(all=True))
