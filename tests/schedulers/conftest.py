"""A real Slurm of these tests' own: they stop its controller."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.schedulers import submitted
from gpubench.schedulers.submitted import Submitted
from tests.kubernetes.cluster import Cluster
from tests.lsf.cluster import LsfCluster
from tests.pbs.cluster import PbsCluster
from tests.slurm.cluster import SlurmCluster


def job_directory(place: Path, script: str, *, name: str = "j001-n1", campaign: str = "campaign") -> Path:
    """With this script."""
    directory = place / campaign / "jobs" / name
    directory.mkdir(parents=True)
    (directory / "job.sh").write_text(script)
    return directory


def remembered(job_dir: Path) -> Submitted:
    """Which job of the scheduler it stands for."""
    entry = submitted.read(job_dir)
    assert entry is not None
    return entry


@pytest.fixture
def kubernetes_here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A stand-in cluster whose kubectl is the one on PATH."""
    cluster = Cluster(tmp_path_factory.mktemp("kubernetes"))
    for name, value in cluster.env().items():
        monkeypatch.setenv(name, value)
    cluster.have_images({"bash": {}})
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def cluster() -> Iterator[SlurmCluster]:
    """Four hosts, no accounting."""
    with SlurmCluster() as made:
        yield made


@pytest.fixture
def slurm_here(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """Clients that this process starts talk to the cluster; afterwards no job is left."""
    for name, value in cluster.env().items():
        monkeypatch.setenv(name, value)
    yield cluster
    cluster.say("scancel", "--me")
    cluster.wait_idle()


@pytest.fixture
def lsf_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LsfCluster]:
    """Stand-ins for LSF's clients are found first; afterwards no job is left."""
    made = LsfCluster(tmp_path, interval=1)
    for name, value in made.env().items():
        monkeypatch.setenv(name, value)
    yield made
    made.close()


@pytest.fixture
def pbs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PbsCluster]:
    """Stand-ins for PBS' clients are found first; afterwards no job is left."""
    made = PbsCluster(tmp_path, kill_delay=1)
    for name, value in made.env().items():
        monkeypatch.setenv(name, value)
    yield made
    made.close()
