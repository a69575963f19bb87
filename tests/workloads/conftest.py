from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.workloads.base import WorkloadContext
from tests.conftest import need
from tests.workloads.running import Answers


@pytest.fixture(scope="session")
def cluster() -> Iterator[WorkloadContext]:
    """Two real worker processes over TCP, shared by the folder: starting them costs more than using them."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", protocol="tcp"
        ) as local,
        distributed.Client(local) as client,
    ):
        yield WorkloadContext(client, sorted(client.scheduler_info(n_workers=-1)["workers"]), 1, "cpu", "tcp")


@pytest.fixture(scope="session")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the stand-in for NVML."""
    compiler = shutil.which("gcc") or ""
    need(bool(compiler), "gcc, for the stand-in of libnvidia-ml.so.1")
    library = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).parents[1] / "stand_ins" / "gpu" / "nvml.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library / "libnvidia-ml.so.1"), str(source)], check=True)
    return library


@pytest.fixture(scope="module")
def answers(cluster: WorkloadContext) -> Iterator[Answers]:
    """Right answers, to be falsified."""
    made = Answers(cluster)
    yield made
    made.close()
