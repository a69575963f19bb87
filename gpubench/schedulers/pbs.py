"""Scheduler ``pbs``: qsub, qstat, qselect, qdel of PBS Professional and OpenPBS (not Torque).

From the reference guides (https://help.altair.com/2024.1.0/PBS%20Professional/PBSReferenceGuide2024.1.pdf), from
OpenPBS' source (23.06) and issues, and from scripts of sites that run it; none of it could be tried on a real PBS:

* The job's shell is the user's login shell unless ``-S`` names one, and it starts in the home directory.
* ``-V`` hands the environment over. ``qstat -F json`` writes it down, in most versions without escaping all of it
  (openpbs issues 1255, 2541): exported shell functions aren't handed over, and lines are read where JSON can't be.
* What the job prints comes into its files at its end, unless the site allows ``-k d``; the script opens a log itself.
* Without job history the server forgets a job at its end, and refuses ``-x``; the script's exit code is in a file.
* A dependency on a job that has ended is refused, or holds the job for ever before OpenPBS 20: such jobs are left out.
* Jobs are started again after a failure of their node unless ``-r n`` forbids it.
* ``qdel`` and the end of the walltime send SIGTERM, and SIGKILL after ``kill_delay`` (10 s by default), or once
  the login shell that runs the script has ended of it (the MOM's ``catch_child.c``): the script has hardly any time.
  There is no earlier warning: the script gives it to itself.
* An exit status below 0 is PBS's own, one of 256 and more is 256 and the number of the signal.
* A job's id names the server that took it, and clients ask that one, whatever PBS_SERVER and PBS_DEFAULT say
  (``get_server`` in src/lib/Libcmds). ``qselect`` asks the server that these or pbs.conf name. Without job history a
  server that doesn't know its own job has forgotten one that has ended.
* Peer scheduling moves a job to another server: with history its state is M, and its queue is ``QUEUE@SERVER``. It
  keeps its id, and ``ID@SERVER`` asks there.
* ``qsub`` hands a job over in several steps; the last one commits it (``__pbs_submit`` in src/lib/Libifl), and what
  fails before leaves no job. When the connection breaks, the words are those of src/lib/Libdis/dis.c.

Jobs run one after the other whatever became of the first, so they depend by ``afterany``, not ``afterok``.
"""

import dataclasses
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpubench.schedulers.batch import STOPPED, Accepted, Allocation, BatchScheduler, call
from gpubench.schedulers.state import JobState, Word, judged
from gpubench.schedulers.submitted import Submitted

WORDS = {
    "Q": Word("pending", "queued"),
    "H": Word("pending", "held"),
    "W": Word("pending", "waits for its time"),
    "T": Word("pending", "in transit"),
    "R": Word("running"),
    "E": Word("running"),
    "S": Word("running", "suspended: it holds its nodes, and its processes are stopped"),
    "U": Word("running", "suspended, because somebody uses the machine's keyboard"),
    "B": Word("running"),
    "F": Word("ended"),
    "X": Word("ended"),
}
"""Every letter of qstat(1B) but M: a job that was moved waits, runs or has ended on another server, which is asked."""
MOVED = "M"
_KILLED = {"-25": "it used more CPUs than it asked for", "-27": "it used more memory than it asked for"}
_KILLED |= {"-29": "its walltime was over"}
"""Exit statuses of PBS's own that say more than that the job couldn't be started."""
_LONGEST_NAME = 230
"""Of a longer name the end is kept, by which a submit is told from others."""
_READ = ("job_state", "Exit_status", "substate", "comment", "exec_host", "queue", "Job_Owner", "PBS_O_WORKDIR")
_LINE = re.compile(rf'^\s*"({"|".join(_READ)})":\s*"?(.*?)"?,?$', re.MULTILINE)
_ESCAPED = re.compile(r"\\(.)")
_OF_THE_SCRIPT = re.compile(r"^#PBS\s(?:.*\s)?-q\s*[\w.-]*@([\w.:-]+)", re.MULTILINE)
_SERVER = re.compile(r'"pbs_server":\s*"([^"]+)"')


class Pbs(BatchScheduler):
    NAME = "pbs"
    TITLE = "PBS"
    SUBMIT = "qsub"
    ALLOCATE = "qsub -I -l select={nodes} -l place=scatter:excl -l walltime=2:00:00"
    LIST = "qselect"
    LOOK = "qstat -x -f {job_id}"
    OF_A_JOB = ("PBS_", "BASH_FUNC_")  # and shell functions
    PASSED_ON = ("PBS_SERVER", "PBS_DEFAULT", "PBS_CONF_FILE", "PBS_EXEC")
    IDS = (
        re.compile(r"^(?P<id>\d+(?:\[\])?\.[\w.-]+)[ \t]*$", re.MULTILINE),
        re.compile(r"(?:^|\s)(?P<id>\d+(?:\[\])?\.[A-Za-z][\w.-]*\w)(?=\s|$)"),
    )
    UNCLEAR_ANSWERS = ("Premature end of message", "End of File", "rotocol error", "rotocol failure", "System error")

    def cluster_of(self, job_dir: Path, environ: Mapping[str, str]) -> str:
        """The server of the script's queue (``QUEUE@SERVER``), else this shell's: qstat writes it above its answers."""
        script = job_dir / "job.sh"
        chosen = _OF_THE_SCRIPT.findall(script.read_text(encoding="utf-8")) if script.exists() else []
        return str(chosen[-1]) if chosen else self._own_server(environ)

    def _own_server(self, environ: Mapping[str, str]) -> str:
        command = ["qstat", "-B", "-f", "-F", "json"]
        done = call(command, env=self.environment(environ))
        match = _SERVER.search(done.stdout)
        if done.returncode or not match:
            raise self.no_answer(" ".join(command), done)
        return match[1]

    def run_submit(
        self, job_dir: Path, name: str, environ: Mapping[str, str], after: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        dependency = ["-W", f"depend=afterany:{':'.join(after)}"] if after else []
        command = ["qsub", "-V", "-N", _name(name), *dependency, "job.sh"]
        env = {**self.environment(environ), "PWD": str(job_dir.resolve())}
        return call(command, env=env, cwd=job_dir.resolve())

    def dependencies(self, after: Sequence[str]) -> Sequence[str]:
        """Those that haven't ended: see the module."""
        return [job_id for job_id in after if not self.query(Submitted(self.NAME, "", job_id)).over]

    def current_allocation(self, environ: Mapping[str, str]) -> Allocation | None:
        """The node file names a host once for each of its chunks or processes."""
        try:
            hosts = set(Path(environ["PBS_NODEFILE"]).read_text(encoding="utf-8").split())
        except (KeyError, OSError):
            return None
        return self.allocation(environ["PBS_JOBID"], len(hosts)) if hosts and environ.get("PBS_JOBID") else None

    def find(self, job: Submitted) -> Accepted | None:
        own = self._own_server(os.environ) if job.cluster else ""
        server = [] if job.cluster == own else ["-q", f"@{job.cluster}"]
        done = self._with_history("qselect", "-N", _name(job.name), *server)
        if done.returncode:
            raise self.no_answer("qselect", done)
        for job_id in done.stdout.split():
            if (self._attributes(job_id) or {}).get("PBS_O_WORKDIR") == job.directory:
                return Accepted(job_id)
        return None

    def of_number(self, number: str, job: Submitted) -> Accepted | None:
        """See ``BatchScheduler.of_number``; an id names its server."""
        return Accepted(f"{number}.{job.cluster}") if job.cluster else None

    def query(self, job: Submitted) -> JobState:
        """See ``BatchScheduler.query``; a job that was moved to another server is asked for there."""
        attributes = self._attributes(job.job_id)
        if attributes is None:
            return self.forgotten(dataclasses.replace(job, cluster=job.job_id.partition(".")[2]))
        if other := self._not_ours(job, attributes):
            return other
        if attributes["job_state"] != MOVED:
            return _state(attributes, job.job_id)
        moved = self._attributes(_at(job.job_id, attributes))
        if moved is not None and moved["job_state"] != MOVED:
            return self._not_ours(job, moved) or _state(moved, job.job_id)
        says = "its state is M there, too" if moved else "which doesn't know it"
        return JobState("unknown", MOVED, f"moved to {attributes.get('queue')}, {says}", None, job.job_id)

    def kill_command(self, job: Submitted) -> list[str]:
        """``qdel``, on the server to which the job was moved."""
        attributes = self._attributes(job.job_id)
        return ["qdel", _at(job.job_id, attributes) if attributes and attributes["job_state"] == MOVED else job.job_id]

    def _not_ours(self, job: Submitted, attributes: Mapping[str, str]) -> JobState | None:
        return self.not_ours(
            job, attributes.get("Job_Owner", "").rpartition("@")[0], attributes.get("PBS_O_WORKDIR", "")
        )

    def _attributes(self, job_id: str) -> dict[str, str] | None:
        """What qstat says of a job, with ``PBS_O_WORKDIR`` of its environment; None where PBS doesn't know it."""
        done = self._with_history("qstat", "-f", "-F", "json", job_id)
        if "Unknown Job Id" in done.stderr:
            return None
        if done.returncode or '"job_state"' not in done.stdout:
            raise self.no_answer(f"qstat {job_id}", done)
        try:
            (job,) = json.loads(done.stdout, strict=False)["Jobs"].values()
            return {key: str(value) for key, value in {**job.get("Variable_List", {}), **job}.items()}
        except (ValueError, AttributeError, TypeError):
            return {key: _ESCAPED.sub(r"\1", value) for key, value in _LINE.findall(done.stdout)}

    def _with_history(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Also of jobs that have ended, where the server remembers them."""
        done = self.ask(command, "-x", *arguments)
        if "not configured to maintain job history" in done.stderr:
            return self.ask(command, *arguments)
        return done


def _at(job_id: str, attributes: Mapping[str, str]) -> str:
    """``ID@SERVER`` of a job that was moved: its queue reads ``QUEUE@SERVER``."""
    return f"{job_id}@{attributes.get('queue', '').partition('@')[2]}".rstrip("@")


def _state(attributes: Mapping[str, str], job_id: str) -> JobState:
    word, comment = attributes["job_state"], attributes.get("comment", "")
    hosts = ",".join(
        dict.fromkeys(part.partition("/")[0] for part in attributes.get("exec_host", "").split("+") if part)
    )
    phase = WORDS[word].phase if word in WORDS else "unknown"
    if phase != "ended":
        reason = "" if phase == "running" else comment
        return judged(WORDS, word, job_id=job_id, hosts=hosts, reason=reason, title="PBS")
    if attributes.get("substate") == "91":
        reason = "it was ended by qdel"
    elif attributes.get("Exit_status", "") == str(STOPPED):
        reason = "it was asked to end: by qdel, or because its time was nearly over"
    elif (status := attributes.get("Exit_status", "-")).startswith("-"):
        reason = _KILLED.get(status) or f"PBS couldn't run it (Exit_status {status}): {comment}"
    else:
        reason = ""
    code = _exit_code(attributes.get("Exit_status", ""))
    end = "CANCELLED" if attributes.get("substate") == "91" else "FAILED" if code != 0 else "COMPLETED"
    return JobState("ended", end, reason, code, job_id, hosts)


def _exit_code(status: str) -> int | None:
    """As a shell would say it; None where the job has none."""
    number = int(status) if status.isdigit() else None
    return number if number is None or number < 256 else number - 128


def _name(name: str) -> str:
    """As PBS takes it: no ``@``, 230 characters."""
    return name.replace("@", "_")[-_LONGEST_NAME:].lstrip(".-")
