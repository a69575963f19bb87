"""Scheduler ``lsf``: bsub, bjobs, bkill of IBM Spectrum LSF 10.1.

What LSF has forgotten (CLEAN_PERIOD, an hour by default) has ended; how, says the job's own last word, which its script
writes on exit. A job without one, and one whose first host LSF has lost, count as failed, never as completed.

From the command reference (https://www.ibm.com/docs/en/spectrum-lsf/10.1.0?topic=reference-command), and from scripts
of sites that run it; none of it could be tried on a real LSF:

* ``bsub < job.sh`` takes the script with its ``#BSUB`` lines everywhere; ``bsub job.sh`` only where lsf.conf says so.
* The environment of the submit is the job's, and its working directory too; ``bsub`` believes ``PWD``.
* Output comes into the file at the end of the job unless ``LSB_STDOUT_DIRECT`` is set; LSF's report stands behind it.
* ``bjobs -o`` shows ``-`` for what isn't known, and an exit code of DONE isn't.
* ``bkill`` sends SIGINT, 10 s later SIGTERM, and 10 s later SIGKILL (JOB_TERMINATE_INTERVAL) to every process of the
  job on its launch node. At the time limit SIGUSR2 comes, and the end ten minutes later; ``-wa TERM -wt`` comes before.
* Memory has no unit: what a number means says LSF_UNIT_FOR_LIMITS in lsf.conf.

Jobs run one after the other whatever became of the first, so they depend by ``ended``, not ``done``.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpubench.errors import SchedulerError
from gpubench.schedulers.batch import STOPPED, Allocation, BatchScheduler, call
from gpubench.schedulers.state import JobState, Phase

_WAITING = {"PEND", "PSUSP", "PROV", "WAIT", "FWD_PEND"}
_LOST = {
    "UNKWN": "LSF has lost contact with the job's first host; bkill -r {job_id} makes it forget the job",
    "ZOMBI": "to be killed, but LSF has lost contact with its first host; bkill -r {job_id} makes it forget the job",
}
"""Such a job may run on: another one beside it would measure both."""
_RUNNING = {"RUN", "USUSP", "SSUSP", *_LOST}
_WORDS = {"DONE": "COMPLETED", "EXIT": "FAILED"}
"""LSF's two ends in the words that all schedulers share; its reason goes with them."""

_SUBMITTED = re.compile(r"^Job <(\d+)> is submitted to (?:default )?queue <", re.MULTILINE)
_FIELDS = "stat exit_code exec_host exit_reason pend_reason"


class Lsf(BatchScheduler):
    """See the module."""

    NAME = "lsf"
    TITLE = "LSF"
    SUBMIT = "bsub"
    ALLOCATE = "bsub -nnodes {nodes} -W 2:00 -Is"
    KILL = "bkill"
    LIST = "bjobs"
    LOOK = "bjobs -l {job_id}"
    OF_A_JOB = ("JSM_", "PMIX_", "LSB_JOB", "LSB_DJOB", "LSB_HOSTS", "LSB_MCPU_HOSTS", "LSB_BATCH_JID")

    def run_submit(
        self, job_dir: Path, name: str, environ: Mapping[str, str], after: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        """``bsub`` from the job's directory, with the script as its input."""
        env = {**environ, "PWD": str(job_dir.resolve()), "LSB_STDOUT_DIRECT": "Y"}
        dependency = ["-w", " && ".join(f"ended({job_id})" for job_id in after)] if after else []
        script = (job_dir / "job.sh").read_text(encoding="utf-8")
        return call(["bsub", "-J", name, *dependency], env=env, cwd=job_dir.resolve(), text=script)

    def submitted_id(self, done: subprocess.CompletedProcess[str]) -> str:
        """``Job <NUMBER> is submitted to queue <NAME>``."""
        found = _SUBMITTED.search(done.stdout)
        return found[1] if found and not done.returncode else ""

    def current_allocation(self, environ: Mapping[str, str]) -> Allocation | None:
        """See ``QueuedScheduler``; a list of hosts counts as one node less, the launch node."""
        job_id, path = environ.get("LSB_JOBID", ""), environ.get("LSB_DJOB_HOSTFILE", "")
        try:
            hosts = set(Path(path).read_text(encoding="utf-8").split())
        except OSError:
            return None
        return self.allocation(job_id, len(hosts) - 1) if job_id and hosts else None

    def cancel_timeout(self, now: JobState) -> SchedulerError:
        """Also of a job that LSF has lost: it may run on."""
        if now.word not in _LOST:
            return super().cancel_timeout(now)
        return SchedulerError(
            f"job {now.job_id} hasn't ended {self.CANCEL_S:g} s after bkill: {now.word}",
            then=f"{now.reason}; first see that nothing of it runs on {now.hosts or 'its hosts'}",
        )

    def find(self, job_dir: Path) -> str:
        """See ``BatchScheduler.find``."""
        done = call(["bjobs", "-a", "-noheader", "-o", "jobid sub_cwd delimiter='|'"])
        if done.returncode and "No job found" not in done.stderr + done.stdout:
            raise self.no_answer("bjobs", done)
        rows = (line.partition("|") for line in done.stdout.splitlines())
        home = str(Path.home())
        return max(
            (number for number, _, directory in rows if directory.replace("$HOME", home, 1) == str(job_dir)),
            key=int,
            default="",
        )

    def query(self, job_id: str) -> JobState | None:
        """See ``BatchScheduler.query``."""
        done = call(["bjobs", "-noheader", "-o", f"{_FIELDS} delimiter='|'", job_id])
        if "is not found" in done.stderr + done.stdout:
            return None
        fields = ["" if field == "-" else field for field in done.stdout.rstrip("\n").split("\n")[0].split("|", 4)]
        if done.returncode or len(fields) != 5:
            raise self.no_answer(f"bjobs {job_id}", done)
        return _state(*fields, job_id=job_id)


def _state(word: str, code: str, hosts: str, exit_reason: str, pend_reason: str, *, job_id: str) -> JobState:
    phase: Phase = "pending" if word in _WAITING else "running" if word in _RUNNING else "ended"
    if word in _LOST:
        return JobState(phase, word, _LOST[word].format(job_id=job_id), None, job_id, _hosts(hosts))
    number = None
    if phase == "ended":
        number = 0 if word == "DONE" else int(code) if code.isdigit() else None
    reason = exit_reason if phase == "ended" else pend_reason if phase == "pending" else ""
    if number == STOPPED:
        reason = reason or "it was asked to end: by bkill, or because its time was nearly over"
    return JobState(phase, _WORDS.get(word, word), reason, number, job_id, _hosts(hosts))


def _hosts(text: str) -> str:
    """``1*batch2:42*a1:42*a2`` less the slots and the launch node, which is the first."""
    names = dict.fromkeys(part.rpartition("*")[2] for part in text.split(":") if part)
    return ",".join(list(names)[1:] or names)
