"""What the stand-ins for PBS share: the server's nodes and settings, its jobs on disk, and the processes of a job.

STAND_IN_PBS names a directory. `server.json` there: {"nodes": {"n1": 0, ...}, "history": true, "kill_delay": 10,
"unescaped": true}: the process id of each node's init (0: the node is a name, and its processes run on this machine),
whether jobs that have ended are remembered, seconds from SIGTERM to SIGKILL, and whether qstat writes JSON as versions
before 20.0.1 do. A job is a folder `jobs/<number>` with `job.json`, rewritten by rename; `down` is there while the
server answers nobody. Another server is the directory `<name>` beside it: PBS_SERVER or PBS_DEFAULT, the part of a
job's id behind the dot, and `@<name>` behind an id choose it, as `get_server` of OpenPBS does (src/lib/Libcmds).
"""

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

SERVER = "pbs-server"
DEFAULT = os.environ.get("PBS_SERVER") or os.environ.get("PBS_DEFAULT") or SERVER


def place(name):
    """The directory of a server."""
    own = Path(os.environ.get("STAND_IN_PBS", "/nonexistent"))
    return own if name == SERVER else own.parent / name


STATE = place(DEFAULT)


def choose(job_id):
    """Of a job's id, which may end in `@<server>`, what its server calls it; that server is asked from now on."""
    global STATE  # noqa: PLW0603 - one command asks one server
    plain, _, current = job_id.partition("@")
    number, _, parent = plain.partition(".")
    STATE = place(current or parent or DEFAULT)
    if not STATE.is_dir():
        fail(f"No Permission.\nqstat: cannot connect to server {current or parent} (errno=15007)", 171)
    return f"{number}.{parent or DEFAULT}"


def fail(text, code):
    print(text, file=sys.stderr)
    sys.exit(code)


def settings(command):
    """Of a server that answers."""
    if (STATE / "down").exists():
        fail(f"Connection refused\n{command}: cannot connect to server {SERVER} (errno=111)", 111)
    return json.loads((STATE / "server.json").read_text())


@contextlib.contextmanager
def locked():
    with (STATE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def folder(job_id):
    return STATE / "jobs" / str(job_id).partition(".")[0]


def load(job_id):
    return json.loads((folder(job_id) / "job.json").read_text())


def save(job):
    part = folder(job["id"]) / "job.part"
    part.write_text(json.dumps(job))
    part.rename(folder(job["id"]) / "job.json")


def change(job_id, **attributes):
    with locked():
        job = load(job_id)
        job["attributes"].update(attributes)
        save(job)
    return job


def ended(job):
    return job["attributes"]["job_state"] == "F"


def find(job_id, *, history):
    """A job that the server knows; without history it forgets those that have ended."""
    with contextlib.suppress(OSError):
        job = load(job_id)
        if history or not ended(job):
            return job
    return None


def jobs():
    found = (path for path in (STATE / "jobs").glob("[0-9]*") if (path / "job.json").exists())
    return [load(path.name) for path in sorted(found, key=lambda path: int(path.name))]


def processes():
    """Parent and session of every process of the machine, on whichever node."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent, _, session = map(int, (entry / "stat").read_text().rpartition(")")[2].split()[1:4])
            found[int(entry.name)] = (parent, session)
    return found


def of_the_job(pid, sessions):
    """As pbs_mom: the processes of the job's sessions on its first node, those below the daemon `pid`, not itself.

    `sessions` remembers them: a process whose parent has died belongs to the job all the same. What came to a node by
    ssh belongs to no job.
    """
    known = processes()
    found, left = set(), [pid]
    while left:
        at = left.pop()
        new = {child for child, (parent, _) in known.items() if parent == at} - found
        found |= new
        left += new
    sessions |= {known[one][1] for one in found} - {known.get(pid, (0, 0))[1]}
    return found | {one for one, (_, session) in known.items() if session in sessions}


def kill(pid, number, sessions):
    """Signal the job, but not what stands between the daemon and the script: a real one has no such processes."""
    for child in of_the_job(pid, sessions):
        with contextlib.suppress(OSError):
            if number == signal.SIGKILL or Path(f"/proc/{child}/comm").read_text().strip() not in ("nsenter", "setsid"):
                os.kill(child, number)


def clear(pid, sessions):
    """The job has ended: nothing of it lives on its first node."""
    while of_the_job(pid, sessions):
        kill(pid, signal.SIGKILL, sessions)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)
