"""Scheduler ``pbs``: qsub, qstat, qselect, qdel of PBS Professional and OpenPBS (not Torque).

From the reference guides (https://help.altair.com/2024.1.0/PBS%20Professional/PBSReferenceGuide2024.1.pdf), from
OpenPBS' issues, and from scripts of sites that run it; none of it could be tried on a real PBS:

* The job's shell is the user's login shell unless ``-S`` names one, and it starts in the home directory.
* ``-V`` hands the environment over. ``qstat -F json`` writes it down, in most versions without escaping all of it
  (openpbs issues 1255, 2541): exported shell functions aren't handed over, and lines are read where JSON can't be.
* What the job prints comes into its files at its end, unless the site allows ``-k d``; the script opens a log itself.
* Without job history the server forgets a job at its end, and refuses ``-x``; the script's exit code is in a file.
* A dependency on a job that has ended is refused, or holds the job for ever before OpenPBS 20: such jobs are left out.
* Jobs are started again after a failure of their node unless ``-r n`` forbids it.
* ``qdel`` and the end of the walltime send SIGTERM, and SIGKILL after ``kill_delay`` (10 s by default). There is no
  earlier warning: the script gives it to itself.
* An exit status below 0 is PBS's own, one of 256 and more is 256 and the number of the signal.

Jobs run one after the other whatever became of the first, so they depend by ``afterany``, not ``afterok``.
"""

import getpass
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpubench.schedulers import submitted
from gpubench.schedulers.batch import STOPPED, Allocation, BatchScheduler, call
from gpubench.schedulers.state import JobState

_WAITING = {"Q": "queued", "H": "held", "W": "waits for its time", "T": "in transit"}
_RUNNING = {"R", "E", "S", "U", "B"}
_ENDED = {"F", "X"}
_KILLED = {"-25": "it used more CPUs than it asked for", "-27": "it used more memory than it asked for"}
_KILLED |= {"-29": "its walltime was over"}
"""Exit statuses of PBS's own that say more than that the job couldn't be started."""
_LONGEST_NAME = 230
_READ = ("job_state", "Exit_status", "substate", "comment", "exec_host", "PBS_O_WORKDIR")
_LINE = re.compile(rf'^\s*"({"|".join(_READ)})":\s*"?(.*?)"?,?$', re.MULTILINE)
_ESCAPED = re.compile(r"\\(.)")


class Pbs(BatchScheduler):
    """See the module."""

    NAME = "pbs"
    TITLE = "PBS"
    SUBMIT = "qsub"
    ALLOCATE = "qsub -I -l select={nodes} -l place=scatter:excl -l walltime=2:00:00"
    KILL = "qdel"
    LIST = "qselect"
    LOOK = "qstat -x -f {job_id}"
    OF_A_JOB = ("PBS_", "BASH_FUNC_")  # and shell functions
    PASSED_ON = ("PBS_SERVER", "PBS_DEFAULT", "PBS_CONF_FILE", "PBS_EXEC")

    def run_submit(
        self, job_dir: Path, name: str, environ: Mapping[str, str], after: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        """``qsub`` from the job's directory."""
        dependency = ["-W", f"depend=afterany:{':'.join(after)}"] if after else []
        words = ["qsub", "-V", "-N", _name(name), *dependency, "job.sh"]
        return call(words, env={**environ, "PWD": str(job_dir.resolve())}, cwd=job_dir.resolve())

    def dependencies(self, after: Sequence[str]) -> Sequence[str]:
        """Those that haven't ended: see the module."""
        return [job_id for job_id in after if (state := self.query(job_id)) and state.alive]

    def submitted_id(self, done: subprocess.CompletedProcess[str]) -> str:
        """``NUMBER.SERVER`` in the last line."""
        return "" if done.returncode or not done.stdout.strip() else done.stdout.split()[-1]

    def current_allocation(self, environ: Mapping[str, str]) -> Allocation | None:
        """The node file names a host once for each of its chunks or processes."""
        try:
            hosts = set(Path(environ["PBS_NODEFILE"]).read_text(encoding="utf-8").split())
        except (KeyError, OSError):
            return None
        return self.allocation(environ["PBS_JOBID"], len(hosts)) if hosts and environ.get("PBS_JOBID") else None

    def find(self, job_dir: Path) -> str:
        """See ``BatchScheduler.find``; jobs of the same name are told apart by the directory of their submit."""
        done = self._with_history("qselect", "-u", getpass.getuser(), "-N", _name(submitted.job_name(job_dir)))
        if done.returncode:
            raise self.no_answer("qselect", done)
        numbers = {
            one: number for one in done.stdout.split() if (number := one.partition(".")[0]).isdigit()
        }  # no arrays
        for job_id in sorted(numbers, key=lambda one: int(numbers[one]), reverse=True):
            if (self._attributes(job_id) or {}).get("PBS_O_WORKDIR") == str(job_dir):
                return job_id
        return ""

    def query(self, job_id: str) -> JobState | None:
        """See ``BatchScheduler.query``."""
        known = self._attributes(job_id)
        return None if known is None else _state(known, job_id)

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
        except (ValueError, AttributeError):
            return {key: _ESCAPED.sub(r"\1", value) for key, value in _LINE.findall(done.stdout)}

    def _with_history(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Also of jobs that have ended, where the server remembers them."""
        done = call([command, "-x", *words])
        if "not configured to maintain job history" in done.stderr:
            return call([command, *words])
        return done


def _state(known: Mapping[str, str], job_id: str) -> JobState:
    word, comment = known["job_state"], known.get("comment", "")
    hosts = ",".join(dict.fromkeys(part.partition("/")[0] for part in known.get("exec_host", "").split("+") if part))
    if word in _WAITING:
        return JobState("pending", word, comment or _WAITING[word], None, job_id, hosts)
    if word in _RUNNING:
        return JobState("running", word, "", None, job_id, hosts)
    if word not in _ENDED:  # M, moved to another server; and what may be new
        return JobState("unknown", word, f"its state is {word}: {comment}", job_id=job_id)
    if known.get("substate") == "91":
        reason = "it was ended by qdel"
    elif known.get("Exit_status", "") == str(STOPPED):
        reason = "it was asked to end: by qdel, or because its time was nearly over"
    elif (status := known.get("Exit_status", "-")).startswith("-"):
        reason = _KILLED.get(status) or f"PBS couldn't run it (Exit_status {status}): {comment}"
    else:
        reason = ""
    code = _exit_code(known.get("Exit_status", ""))
    end = "CANCELLED" if known.get("substate") == "91" else "FAILED" if code != 0 else "COMPLETED"
    return JobState("ended", end, reason, code, job_id, hosts)


def _exit_code(status: str) -> int | None:
    """As a shell would say it; None where the job has none."""
    number = int(status) if status.isdigit() else None
    return number if number is None or number < 256 else number - 128


def _name(name: str) -> str:
    """As PBS takes it: no ``@``, 230 characters."""
    return name.replace("@", "_")[:_LONGEST_NAME]
