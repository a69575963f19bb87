"""What the stand-ins for LSF and its Job Step Manager share: the cluster's shape, its jobs on disk, and the job itself.

STAND_IN_LSF names a directory. `cluster.json` there: {"hosts": 4, "cores": 2, "gpus": 0, "minute": 60, "interval": 10}:
compute nodes and what each has, how many seconds a minute of LSF takes, and seconds between the signals of a kill. A
job is a folder `jobs/<id>` with `job.json`, rewritten by rename; `down` is there while LSF answers nobody.
"""

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

STATE = Path(os.environ.get("STAND_IN_LSF", "/nonexistent"))
LAUNCH = "batch1"
ENDED = ("DONE", "EXIT")


def fail(text, code=255):
    print(text, file=sys.stderr)
    sys.exit(code)


def asked():
    """First of all in every command: while LSF is down it answers nothing else."""
    if (STATE / "down").exists():
        fail("LSF is down. Please wait ...")


def shape():
    return json.loads((STATE / "cluster.json").read_text())


@contextlib.contextmanager
def locked():
    with (STATE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def folder(job_id):
    return STATE / "jobs" / str(job_id)


def load(job_id):
    return json.loads((folder(job_id) / "job.json").read_text())


def save(job):
    part = folder(job["id"]) / "job.part"
    part.write_text(json.dumps(job))
    part.rename(folder(job["id"]) / "job.json")


def change(job_id, **fields):
    with locked():
        job = {**load(job_id), **fields}
        save(job)
    return job


def jobs():
    found = (path for path in (STATE / "jobs").glob("[0-9]*") if (path / "job.json").exists())
    return [load(path.name) for path in sorted(found, key=lambda path: int(path.name))]


def find(job_id):
    if not job_id.isdigit():
        fail(f"{job_id}: Illegal job ID.")
    if not (folder(job_id) / "job.json").exists():
        fail(f"Job <{job_id}> is not found")
    return load(job_id)


def free_hosts(count, taken_by_others=True):
    """Compute nodes that no running job has; None while there are too few."""
    taken = {host for job in jobs() if job["stat"] == "RUN" for host in job["hosts"]} if taken_by_others else set()
    free = [f"n{number}" for number in range(1, shape()["hosts"] + 1) if f"n{number}" not in taken]
    return free[:count] if len(free) >= count else None


def below(pid):
    """Processes under `pid` by their parents, itself included; whether each is on a compute node."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parents.setdefault(int((entry / "stat").read_text().rpartition(")")[2].split()[1]), []).append(
                int(entry.name)
            )
    found, left = {}, [(pid, False)]
    while left:
        here, remote = left.pop()
        with contextlib.suppress(OSError):
            remote = remote or b"STAND_IN_LSF_HOST=n" in Path(f"/proc/{here}/environ").read_bytes()
        found[here] = remote
        left += [(child, remote) for child in parents.get(here, ())]
    return found


def signal_job(job, number):
    """As LSF: every process of the job on its launch node, whatever its session; none on the compute nodes."""
    for pid, remote in below(job["pid"]).items():
        if not remote and pid != job["pid"]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def clear(job):
    """The allocation has ended: nothing of it lives on any node."""
    while True:
        left = [pid for pid in below(job["pid"]) if pid != job["pid"]]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not left:
            return
        time.sleep(0.05)
