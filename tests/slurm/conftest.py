"""One cluster for all tests that leave it as they found it; whoever breaks hosts waits until they are idle again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import SlurmCluster
from tests.slurm.images import make_image


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmCluster]:
    """Four hosts with sshd, without accounting."""
    with SlurmCluster(ssh=True) as cluster:
        yield cluster


@pytest.fixture
def shared(slurm: SlurmCluster, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory of the test's own that all hosts see; afterwards no job runs and every host is idle."""
    directory = slurm.shared / request.node.name.replace("[", "-").replace("]", "")
    directory.mkdir()
    directory.chmod(0o1777)
    yield directory
    slurm.say("scancel", "--me")
    slurm.wait_idle()


@pytest.fixture(scope="session")
def squashfs(slurm: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image with Python whose ENV sets UCX_TLS and whose WORKDIR is /root/rundir."""
    environment = "UCX_TLS=of-the-image\nONLY=in-the-image\nPATH=/usr/bin\n"
    work = tmp_path_factory.mktemp("image")
    return make_image(work, slurm.shared / "image.sqsh", environment=environment, directory="/root/rundir")
