"""Scheduler ``lsf``: bsub, bjobs, bkill of IBM Spectrum LSF 10.1.

What LSF has forgotten (CLEAN_PERIOD, an hour by default) has ended; how, says the job's own last word, which its script
writes on exit. A job without one, and one whose first host LSF has lost, count as failed, never as completed.

From the command reference (https://www.ibm.com/docs/en/spectrum-lsf/10.1.0?topic=reference-command), and from scripts
of sites that run it; none of it could be tried on a real LSF:

* ``bsub < job.sh`` takes the script with its ``#BSUB`` lines at most sites, ``bsub job.sh`` where lsf.conf says so
  (LSB_BSUB_PARSE_SCRIPT). At some sites only one of them works (OLCF's Summit User Guide; dask-jobqueue issue 328), so
  the profile chooses, and the script says which it is.
* The environment of the submit is the job's, and its working directory too; ``bsub`` believes ``PWD``.
* Output comes into the file at the end of the job unless ``LSB_STDOUT_DIRECT`` is set; LSF's report stands behind it.
* ``bjobs -o`` shows ``-`` for what isn't known, and an exit code of DONE isn't.
* ``bkill`` sends SIGINT, 10 s later SIGTERM, and 10 s later SIGKILL (JOB_TERMINATE_INTERVAL) to every process of the
  job on its launch node. At the time limit SIGUSR2 comes, and the end ten minutes later; ``-wa TERM -wt`` comes before.
* Memory has no unit: what a number means says LSF_UNIT_FOR_LIMITS in lsf.conf.
* Job numbers are a cluster's own, and clients ask the cluster of the machine (LSF_ENVDIR); ``lsid`` says which that is.
  A job that LSF forwards to another cluster keeps its number on the one where it was submitted.
* The states are those of bjobs(1), JOB STATUS; the errors those of ``lsb_errmsg`` and ``ls_errmsg`` in LSF's libraries,
  as clients of its API list them.

Jobs run one after the other whatever became of the first, so they depend by ``ended``, not ``done``.
"""

import contextlib
import dataclasses
import os
import pwd
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpubench.errors import MissingToolError, SchedulerError
from gpubench.schedulers.batch import STOPPED, Accepted, Allocation, BatchScheduler, call
from gpubench.schedulers.state import JobState, Word, judged
from gpubench.schedulers.submitted import Submitted

LOST = ("UNKWN", "ZOMBI")
WORDS = {
    "PEND": Word("pending"),
    "PSUSP": Word("pending", "suspended while it waited"),
    "PROV": Word("pending", "its host is being powered up"),
    "WAIT": Word("pending", "waits in a chunk of jobs"),
    "FWD_PEND": Word("pending", "waits on another cluster"),
    "RUN": Word("running"),
    "USUSP": Word("running", "suspended by its user: it holds its nodes"),
    "SSUSP": Word("running", "suspended by LSF: it holds its nodes"),
    # Such a job may run on: another one beside it would measure both.
    "UNKWN": Word("running", "LSF has lost contact with its first host; bkill -r {job_id} makes it forget the job"),
    "ZOMBI": Word(
        "running",
        "to be killed, but LSF has lost contact with its first host; bkill -r {job_id} makes it forget the job",
    ),
    "DONE": Word("ended"),
    "EXIT": Word("ended"),
}
"""Every word of bjobs(1)."""
_ENDS = {"DONE": "COMPLETED", "EXIT": "FAILED"}
"""LSF's two ends in the words that all schedulers share; its reason goes with them."""
_AS_ARGUMENT = "By hand: bsub job.sh"
"""In scripts that ``bsub`` gets as an argument."""
_FIELDS = "user stat exit_code exec_host exit_reason pend_reason sub_cwd"
_CLUSTER_NAME = re.compile(r"^My cluster name is (\S+)", re.MULTILINE)


class Lsf(BatchScheduler):
    NAME = "lsf"
    TITLE = "LSF"
    SUBMIT = "bsub"
    ALLOCATE = "bsub -nnodes {nodes} -W 2:00 -Is"
    LIST = "bjobs"
    LOOK = "bjobs -l {job_id}"
    OF_A_JOB = ("JSM_", "PMIX_", "LSB_JOB", "LSB_DJOB", "LSB_HOSTS", "LSB_MCPU_HOSTS", "LSB_BATCH_JID")
    OF_QUERIES = ("LSB_",)
    IDS = (re.compile(r"^Job <(?P<id>\d+)> is submitted to (?:default )?queue <", re.MULTILINE),)
    UNCLEAR_ANSWERS = (
        "XDR",
        "Failed in sending/receiving a message",
        "ommunication time",
        "A socket operation has failed",
        "Failed in an LSF library call",
        "System call failed",
        "Batch protocol error",
        "Server is not connected",
    )

    def cluster_of(self, job_dir: Path, environ: Mapping[str, str]) -> str:  # noqa: ARG002 - no script names a cluster
        done = call(["lsid"], env=self.environment(environ))
        match = _CLUSTER_NAME.search(done.stdout)
        if not match:
            raise self.no_answer("lsid", done)
        return match[1]

    def run_submit(
        self, job_dir: Path, name: str, environ: Mapping[str, str], after: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        env = {"LSB_NTRIES": "3", **self.environment(environ)}  # without it, bsub tries for ever while LSF is down
        env |= {"PWD": str(job_dir.resolve()), "LSB_STDOUT_DIRECT": "Y"}
        dependency = ["-w", " && ".join(f"ended({job_id})" for job_id in after)] if after else []
        script = (job_dir / "job.sh").read_text(encoding="utf-8")
        arguments, text = (["job.sh"], None) if _AS_ARGUMENT in script else ([], script)
        return call(["bsub", "-J", name, *dependency, *arguments], env=env, cwd=job_dir.resolve(), text=text)

    def current_allocation(self, environ: Mapping[str, str]) -> Allocation | None:
        """See ``QueuedScheduler``; a list of hosts counts as one node less, the launch node."""
        job_id, path = environ.get("LSB_JOBID", ""), environ.get("LSB_DJOB_HOSTFILE", "")
        try:
            hosts = set(Path(path).read_text(encoding="utf-8").split())
        except OSError:
            return None
        if not job_id or not hosts:
            return None
        cluster = ""
        with contextlib.suppress(SchedulerError, MissingToolError):
            cluster = self.cluster_of(Path(), environ)
        return self.allocation(job_id, len(hosts) - 1, cluster=cluster)

    def cancel_timeout(self, job: Submitted, now: JobState) -> SchedulerError:
        """Also of a job that LSF has lost: it may run on."""
        if now.word not in LOST:
            return super().cancel_timeout(job, now)
        return SchedulerError(
            f"job {now.job_id} hasn't ended {self.CANCEL_S:g} s after bkill: {now.word}",
            then=f"{now.reason}; first see that nothing of it runs on {now.hosts or 'its hosts'}",
        )

    def find(self, job: Submitted) -> Accepted | None:
        if elsewhere := self._elsewhere(job):
            raise SchedulerError(elsewhere)
        done = self.ask("bjobs", "-a", "-noheader", "-o", "jobid job_name sub_cwd delimiter='|'")
        if done.returncode and "No job found" not in done.stderr + done.stdout:
            raise self.no_answer("bjobs", done)
        rows = [line.split("|", 2) for line in done.stdout.splitlines()]
        ours = (
            row[0] for row in rows if row[1:2] == [job.name] and self.not_ours(job, "", _whole(row[2], job)) is None
        )
        return next((Accepted(number) for number in ours), None)

    def query(self, job: Submitted) -> JobState:
        if elsewhere := self._elsewhere(job):
            return JobState("unknown", reason=elsewhere, job_id=job.job_id)
        done = self.ask("bjobs", "-noheader", "-o", f"{_FIELDS} delimiter='|'", job.job_id)
        if "is not found" in done.stderr + done.stdout:
            return self.forgotten(job)
        # Its client may tell on standard output that it waits for the server.
        row = next((line for line in done.stdout.split("\n") if line.count("|") > 5), "")
        fields = ["" if field == "-" else field for field in row.split("|", 5)]
        if done.returncode or len(fields) != 6 or "|" not in fields[5]:
            raise self.no_answer(f"bjobs {job.job_id}", done)
        user, word, code, hosts, exit_reason, rest = fields
        # Both of the last two fields may hold the delimiter, if the directory is written in full.
        ours = job.directory if rest.endswith(f"|{job.directory}") else ""
        pend_reason, directory = (rest.removesuffix(f"|{ours}"), ours) if ours else rest.rsplit("|", 1)
        other = self.not_ours(job, user, "" if directory == "-" else _whole(directory, job))
        return other or _state(word, code, hosts, exit_reason, pend_reason.removeprefix("-"), job_id=job.job_id)

    def kill_command(self, job: Submitted) -> list[str]:
        return ["bkill", job.job_id]

    def _elsewhere(self, job: Submitted) -> str:
        """Why this machine's LSF can't be asked for the job; empty where it can."""
        own = self.cluster_of(Path(job.directory), os.environ) if job.cluster else ""
        if own == job.cluster:
            return ""
        return f"the job is{job.place}, and LSF on this machine is cluster {own}: ask where {job.cluster} answers"


def _whole(directory: str, job: Submitted) -> str:
    """With the home directory that LSF knows of the user, whatever HOME says."""
    try:
        home = pwd.getpwuid(job.uid).pw_dir
    except (KeyError, OverflowError):
        home = str(Path.home())
    return directory.replace("$HOME", home, 1)


def _state(word: str, code: str, hosts: str, exit_reason: str, pend_reason: str, *, job_id: str) -> JobState:
    phase = WORDS[word].phase if word in WORDS else "unknown"
    number = 0 if word == "DONE" else int(code) if code.isdigit() else None
    reason = {"ended": exit_reason, "pending": pend_reason}.get(phase, "")
    if phase == "ended" and number == STOPPED:
        reason = reason or "it was asked to end: by bkill, or because its time was nearly over"
    state = judged(WORDS, word, job_id=job_id, hosts=_hosts(hosts), reason=reason, exit_code=number, title="LSF")
    return dataclasses.replace(state, word=_ENDS.get(word, word), reason=state.reason.replace("{job_id}", job_id))


def _hosts(text: str) -> str:
    """``1*batch2:42*a1:42*a2`` less the slots and the launch node, which is the first."""
    names = dict.fromkeys(part.rpartition("*")[2] for part in text.split(":") if part)
    return ",".join(list(names)[1:] or names)
