"""One stand-in cluster for all tests; each leaves it without Jobs. A real API server for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.real import ApiServer


@pytest.fixture(scope="session")
def running_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes, images of two versions of UCX."""
    made = Cluster(tmp_path_factory.mktemp("kubernetes"))
    try:
        made.push_images()
        yield made
    finally:
        made.close()


@pytest.fixture
def cluster(running_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster; afterwards it has its two nodes and its images, and nothing runs."""
    yield running_cluster
    running_cluster.tidy()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Started, and empty."""
    made = ApiServer(tmp_path_factory.mktemp("kubernetes"))
    yield made
    made.close()


@pytest.fixture
def here(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    """What this process calls kubectl talks to it."""
    for name, value in server.env().items():
        monkeypatch.setenv(name, value)
    return server
