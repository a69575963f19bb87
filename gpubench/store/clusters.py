"""A standing cluster's directory, ``outputs/clusters/<name>/``.

``cluster.json``, ``jobs.d/NNN.json`` (its jobs, never rewritten), ``node.pyz``, ``jobs/<job>/`` (script, specs, logs;
``retired`` where the job was given back), ``state.json`` (rank 0's), ``token``, ``tls/`` and ``scheduler.json``: the
last three only while the cluster stands.
"""

import dataclasses
import shutil
from pathlib import Path

from gpubench.errors import DataError, UsageError
from gpubench.files import create_exclusively, reading, write_atomically, writing
from gpubench.model.cluster import TLS_FOLDER, ClusterJob, ClusterRecord
from gpubench.node.spec.cluster import REQUESTS, RETIRED, SCHEDULER_FILE, STATE_FILE, TOKEN_FILE, ClusterState
from gpubench.node.spec.plain import SpecError

CLUSTERS = "clusters"
RECORD_FILE = "cluster.json"
JOBS = "jobs.d"
RETIRED_FILE = "retired"


@dataclasses.dataclass(frozen=True)
class Cluster:
    """One of them, with what it was asked to be."""

    directory: Path
    record: ClusterRecord

    @staticmethod
    def begin(record: ClusterRecord) -> "Cluster":
        """A new one, in a directory that only this user may enter: who can read its token may join.

        Raises:
            UsageError: there is one of that name.
            MissingToolError: the directory can't be made.
        """
        directory = Path(record.directory)
        try:
            with writing(directory):
                directory.parent.mkdir(parents=True, exist_ok=True)
                directory.mkdir(mode=0o700)
                (directory / REQUESTS).mkdir()
                (directory / JOBS).mkdir()
        except FileExistsError:
            raise UsageError(
                f"there is a cluster {record.name} in {directory}",
                then="choose another --name; you may remove the directory of a stopped cluster",
            ) from None
        write_atomically(directory / RECORD_FILE, record.dump())
        return Cluster(directory, record)

    @staticmethod
    def open(directory: Path) -> "Cluster":
        """Raises UsageError where there is none, DataError where it can't be read."""
        path = directory / RECORD_FILE
        try:
            with reading(path):
                data = path.read_bytes()
        except FileNotFoundError:
            raise UsageError(f"there is no cluster in {directory}") from None
        return Cluster(directory.resolve(), ClusterRecord.parse(data, str(path)))

    @property
    def standing(self) -> bool:
        """Whether it hasn't been stopped."""
        return (self.directory / TOKEN_FILE).exists()

    @property
    def jobs(self) -> list[ClusterJob]:
        """In the order in which they were asked for; the first holds the scheduler."""
        paths = sorted((self.directory / JOBS).glob("*.json"))
        return [ClusterJob.parse(path.read_bytes(), str(path)) for path in paths]

    def add_job(self, nodes: int, limit_s: float) -> ClusterJob:
        """A further allocation. Of two callers at once each gets numbers and ranks of its own."""
        while True:
            jobs = self.jobs
            number = len(jobs) + 1
            first_rank = jobs[-1].first_rank + jobs[-1].nodes if jobs else 0
            job = ClusterJob(job=f"j{number:03d}-n{nodes}", nodes=nodes, first_rank=first_rank, limit_s=limit_s)
            try:
                create_exclusively(self.directory / JOBS / f"{number:03d}.json", job.dump())
            except FileExistsError:
                continue
            return job

    def job_dir(self, job: ClusterJob) -> Path:
        return self.directory / "jobs" / job.job

    def retired(self, job: ClusterJob, state: ClusterState | None) -> bool:
        """Whether it was given back, or all its nodes took leave in order, because their time was over."""
        left = [node["state"] == RETIRED for node in state.nodes if node["job"] == job.job] if state else []
        return (self.job_dir(job) / RETIRED_FILE).exists() or (len(left) == job.nodes and all(left))

    @property
    def planned(self) -> int:
        """How many workers there should be."""
        state = self.state()
        nodes = sum(job.nodes for job in self.jobs if job.leads or not self.retired(job, state))
        return nodes * self.record.site.layout.workers

    def retire(self, job: ClusterJob) -> None:
        write_atomically(self.job_dir(job) / RETIRED_FILE, "")

    def state(self) -> ClusterState | None:
        """As rank 0 last wrote it; None before the first time; raises DataError."""
        path = self.directory / STATE_FILE
        try:
            with reading(path):
                return ClusterState.parse(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except SpecError as error:
            raise DataError(f"{path}: {error}") from None

    def forget(self) -> None:
        """Remove all of it: no job of it was ever submitted."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def take_down(self) -> None:
        """Remove what lets anybody join: scheduler's file, meeting place, keys, and last the token."""
        for path in [self.directory / SCHEDULER_FILE, *self.directory.glob(".rendezvous-*")]:
            path.unlink(missing_ok=True)
        shutil.rmtree(self.directory / TLS_FOLDER, ignore_errors=True)
        (self.directory / TOKEN_FILE).unlink(missing_ok=True)


def find_cluster(outputs: Path, name: str | None) -> Cluster:
    """The named one, else the only one that hasn't been stopped; raises UsageError where there is none, or several."""
    folder = outputs / CLUSTERS
    if name is not None:
        return Cluster.open(folder / name)
    records = sorted(folder.glob(f"*/{RECORD_FILE}"))
    standing = [cluster for cluster in (Cluster.open(path.parent) for path in records) if cluster.standing]
    if len(standing) != 1:
        names = ", ".join(cluster.record.name for cluster in standing)
        raise UsageError(
            f"{len(standing)} clusters are running in {folder}: {names}"
            if standing
            else f"no cluster is running in {folder}",
            then="name one" if standing else "gpubench cluster start, or --outputs",
        )
    return standing[0]
