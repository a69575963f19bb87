"""Two real Slurm clusters with one database: numbers are a cluster's own, and every command asks the right one."""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.schedulers import submitted
from gpubench.schedulers.slurm import Slurm
from tests.schedulers.conftest import job_directory, remembered
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hosts import until

pytestmark = pytest.mark.system
SLEEP = "#!/bin/bash\nsleep 600\n"


@pytest.fixture(scope="module")
def clusters() -> Iterator[SlurmCluster]:
    """``hosts``, and ``far`` beside it, whose nodes are down: jobs wait there."""
    with SlurmCluster(accounting=True) as made:
        made.add_cluster("far")
        yield made


@pytest.fixture
def place(clusters: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in clusters.env().items():
        monkeypatch.setenv(name, value)
    shared = clusters.shared / tmp_path.name
    shared.mkdir()
    return shared


def submit_until(number: str, place: Path, cluster: str) -> Path:
    """A job of that number on a cluster."""
    for at in range(100):
        directory = job_directory(place, SLEEP, name=f"{cluster}-{at}")
        if Slurm().submit(directory, {**os.environ, "SLURM_CLUSTERS": cluster}) == number:
            return directory
        Slurm().cancel(directory)
    raise AssertionError(number)


@pytest.mark.parametrize(
    "by", ["script", *(pytest.param(name, marks=pytest.mark.long) for name in ("SLURM_CLUSTERS", "SBATCH_CLUSTERS"))]
)
def test_a_job_on_another_cluster_is_asked_for_and_ended_there(
    by: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = Slurm()
    directory = job_directory(place, SLEEP.replace("\n", "\n#SBATCH --clusters=far\n", 1) if by == "script" else SLEEP)
    number = slurm.submit(directory, {**os.environ, **({by: "far"} if by != "script" else {})})
    entry = remembered(directory)
    assert (entry.cluster, entry.place) == ("far", " on cluster far")
    twin = submit_until(number, place, "hosts")  # of the same number, on this machine's own cluster
    until(lambda: slurm.state(twin).phase == "running", "the twin")
    for chosen in ("", "hosts", "far"):
        monkeypatch.setenv("SLURM_CLUSTERS", chosen)
        assert (slurm.state(directory).phase, slurm.state(directory).job_id) == ("pending", number)
        assert slurm.state(twin).phase == "running"
    slurm.cancel(directory)
    assert slurm.state(directory).word == "CANCELLED"
    assert slurm.state(twin).phase == "running"
    slurm.cancel(twin)


def test_a_job_whose_submit_gave_no_answer_is_found_on_the_cluster_that_was_chosen(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = Slurm()
    directory = job_directory(place, SLEEP)
    number = slurm.submit(directory, {**os.environ, "SLURM_CLUSTERS": "far"})
    entry = remembered(directory)
    unheard = dataclasses.replace(entry, job_id="")
    submitted.keep(directory, unheard)
    assert (slurm.state(directory).phase, slurm.state(directory).job_id) == ("pending", number)
    submitted.keep(directory, dataclasses.replace(unheard, name="campaign-another"))
    assert slurm.state(directory).phase == "unknown"  # the job of another submit isn't taken for it
    submitted.keep(directory, entry)
    ask = slurm.ask
    with monkeypatch.context() as patched:  # the controller has forgotten it, and the database has not
        patched.setattr(slurm, "ask", lambda *words: ask("true") if words[0] == "squeue" else ask(*words))
        until(lambda: slurm.find(entry) == (number, "far"), "the job in the database", pause=0.2)
    slurm.cancel(directory)
