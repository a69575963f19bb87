"""One cluster for all tests that leave it as they found it; whoever breaks hosts waits until they are idle again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.model.images_lock import LockRow
from tests.pbs.cluster import PbsCluster
from tests.slurm.campaigns import Login, copy_images, stack_image
from tests.slurm.cluster import OTHER_USER, STAND_INS, SlurmCluster
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
    shutil.rmtree(directory, ignore_errors=True)  # of a first try
    directory.mkdir()
    directory.chmod(0o1777)
    yield directory
    slurm.say("scancel", "--me")
    slurm.say("scancel", f"--user={OTHER_USER}")
    slurm.wait_idle()


@pytest.fixture(scope="session")
def cache(slurm: SlurmCluster) -> Path:
    """``XDG_CACHE_HOME`` with venv images on the directory that all hosts see."""
    directory = slurm.shared / "cache"
    copy_images(directory)
    return directory


@pytest.fixture(scope="session")
def imported(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> LockRow:
    """A squashfs image with Dask and UCX."""
    return stack_image(tmp_path_factory.mktemp("stack"), cache)


@pytest.fixture
def login(slurm: SlurmCluster, shared: Path, cache: Path) -> Login:
    """Root at work in ``shared``."""
    return Login(slurm, shared, cache)


@pytest.fixture
def nobody(slurm: SlurmCluster, shared: Path, cache: Path) -> Login:
    """Another user at work in ``shared``."""
    return Login(slurm, shared, cache, other=True)


@pytest.fixture(scope="session")
def squashfs(slurm: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image with Python whose ENV sets UCX_TLS and whose WORKDIR is /root/rundir."""
    environment = "UCX_TLS=of-the-image\nONLY=in-the-image\nPATH=/usr/bin\n"
    work = tmp_path_factory.mktemp("image")
    return make_image(work, slurm.shared / "image.sqsh", environment=environment, directory="/root/rundir")


@pytest.fixture
def of_ssh(slurm: SlurmCluster, shared: Path) -> dict[str, str]:
    """A PATH whose ssh reads the cluster's keys: it asks the password file for the home directory, not ``$HOME``."""
    (shared / "bin").mkdir()
    (shared / "bin" / "ssh").write_text(f'#!/bin/bash\nexec {shutil.which("ssh")} -F {slurm.ssh_config} "$@"\n')
    (shared / "bin" / "ssh").chmod(0o755)
    return {"PATH": f"{shared / 'bin'}:{slurm.env()['PATH']}"}


@pytest.fixture
def pbs(slurm: SlurmCluster, shared: Path) -> Iterator[PbsCluster]:
    """A PBS server whose nodes are the hosts."""
    nodes = {name: host.init for name, host in slurm.hosts.items()}
    made = PbsCluster(shared, nodes=nodes, commands=slurm.root / STAND_INS.name / "pbs")
    yield made
    made.close()


@pytest.fixture
def of_pbs(shared: Path, pbs: PbsCluster, of_ssh: dict[str, str]) -> dict[str, str]:
    """Variables of a shell with PBS, and the same ssh."""
    return {**pbs.env(), "PATH": f"{shared / 'bin'}:{pbs.env()['PATH']}"}
