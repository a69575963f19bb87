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

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpubench.errors import MissingToolError, SchedulerError
from gpubench.schedulers import submitted
from gpubench.schedulers.client import call, said
from gpubench.schedulers.held import Held
from gpubench.schedulers.job_log import with_log
from gpubench.schedulers.state import JobState, Phase

NAME = "lsf"
SUBMIT = "bsub"
ALLOCATE = "bsub -nnodes {nodes} -W 2:00 -Is"
ONE_AT_A_TIME = False
CANCEL_S = 60.0
LAST_WORD = "end-{job_id}"
"""File in the job's directory: the script's exit code."""

STOPPED = 130
"""Exit code of a script that heard a signal and ended in order."""

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
_OF_A_JOB = ("JSM_", "PMIX_", "LSB_JOB", "LSB_DJOB", "LSB_HOSTS", "LSB_MCPU_HOSTS", "LSB_BATCH_JID")
_FIELDS = "stat exit_code exec_host exit_reason pend_reason"


def submit(job_dir: Path, environ: Mapping[str, str], after: Sequence[str] = ()) -> str:
    """``bsub`` from the job's directory; see ``Detached.submit``."""
    name = submitted.job_name(job_dir)
    before = submitted.read(job_dir)
    submitted.write(job_dir, NAME, name)
    # Inside an allocation the shell has the variables of another job.
    env = {key: value for key, value in environ.items() if not key.startswith(_OF_A_JOB)}
    env |= {"PWD": str(job_dir.resolve()), "LSB_STDOUT_DIRECT": "Y"}
    dependency = ["-w", " && ".join(f"ended({job_id})" for job_id in after)] if after else []
    script = (job_dir / "job.sh").read_text(encoding="utf-8")
    try:
        done = call(["bsub", "-J", name, *dependency], env=env, cwd=job_dir.resolve(), text=script)
    except MissingToolError:  # of any other failure it may have been submitted all the same: `state` finds it
        submitted.restore(job_dir, before)
        raise
    found = _SUBMITTED.search(done.stdout)
    if done.returncode or not found:
        submitted.restore(job_dir, before)
        raise SchedulerError(f"bsub refuses job {name}: {said(done)}", then=f"the script is {job_dir / 'job.sh'}")
    submitted.write(job_dir, NAME, name, found[1])
    return found[1]


def held(environ: Mapping[str, str]) -> Held | None:
    """See ``Detached.held``; a list of hosts counts as one node less, the launch node."""
    job_id, path = environ.get("LSB_JOBID", ""), environ.get("LSB_DJOB_HOSTFILE", "")
    try:
        hosts = set(Path(path).read_text(encoding="utf-8").split())
    except OSError:
        return None
    if not job_id or not hosts:
        return None
    return Held(
        job_id=job_id,
        nodes=len(hosts) - 1,
        count_variables=(),
        log=f"lsf-{job_id}.log",
        last_word=LAST_WORD.format(job_id=job_id),
    )


def state(job_dir: Path) -> JobState:
    """See ``Scheduler.state``."""
    found = _found(job_dir)
    return with_log(found, job_dir / f"lsf-{found.job_id}.log")


def _found(job_dir: Path) -> JobState:
    entry = submitted.read(job_dir)
    if entry is None:
        return JobState("unsubmitted")
    try:
        if entry.here:  # the allocation lives on when the script has ended
            ended = _last_word(job_dir, entry.job_id)
            return ended if ended.phase == "ended" else _asked(entry.job_id) or ended
        job_id = entry.job_id or _id_by_directory(job_dir.resolve())
        if not job_id:
            return JobState("unknown", reason="the front end ended while it submitted the job; bjobs knows none here")
        return _asked(job_id) or _forgotten(job_dir, job_id)
    except MissingToolError:
        return _last_word(job_dir, entry.job_id)


def cancel(job_dir: Path) -> None:
    """``bkill``, then wait for the end."""
    now = state(job_dir)
    if not now.alive:
        return
    entry = submitted.read(job_dir)
    if entry is not None and entry.here:
        raise SchedulerError(
            f"job {job_dir.name} runs inside the allocation {now.job_id}, where other work may run too",
            then=f"press Ctrl-C where 'gpubench submit --here' runs, or give up the allocation: bkill {now.job_id}",
        )
    done = call(["bkill", now.job_id])
    if done.returncode and state(job_dir).alive:
        raise SchedulerError(f"bkill {now.job_id} failed: {said(done)}")
    deadline = time.monotonic() + CANCEL_S
    while state(job_dir).alive:
        if time.monotonic() > deadline:
            now = state(job_dir)
            if now.word in _LOST:
                raise SchedulerError(
                    f"job {now.job_id} hasn't ended {CANCEL_S:g} s after bkill: {now.word}",
                    then=f"{now.reason}; first see that nothing of it runs on {now.hosts or 'its hosts'}",
                )
            raise SchedulerError(
                f"job {now.job_id} still runs {CANCEL_S:g} s after bkill", then=f"look at it: bjobs -l {now.job_id}"
            )
        time.sleep(0.5)


def _id_by_directory(job_dir: Path) -> str:
    """The newest of this user's jobs that were submitted from there; empty where LSF knows none (any more)."""
    done = call(["bjobs", "-a", "-noheader", "-o", "jobid sub_cwd delimiter='|'"])
    if done.returncode and "No job found" not in done.stderr + done.stdout:
        raise SchedulerError(f"bjobs failed: {said(done)}", then="is LSF up? try again later")
    rows = (line.partition("|") for line in done.stdout.splitlines())
    home = str(Path.home())
    return max(
        (number for number, _, directory in rows if directory.replace("$HOME", home, 1) == str(job_dir)),
        key=int,
        default="",
    )


def _asked(job_id: str) -> JobState | None:
    """What LSF says; None where it doesn't know the job."""
    done = call(["bjobs", "-noheader", "-o", f"{_FIELDS} delimiter='|'", job_id])
    if "is not found" in done.stderr + done.stdout:
        return None
    fields = ["" if field == "-" else field for field in done.stdout.rstrip("\n").split("\n")[0].split("|", 4)]
    if done.returncode or len(fields) != 5:
        raise SchedulerError(f"bjobs {job_id} failed: {said(done)}", then="is LSF up? try again later")
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


def _forgotten(job_dir: Path, job_id: str) -> JobState:
    """LSF drops jobs that have ended, and no others."""
    word = _last_word(job_dir, job_id)
    if word.phase == "ended":
        return word
    return JobState("ended", "VANISHED", "LSF doesn't know the job, and it left no word of its own", None, job_id)


def _last_word(job_dir: Path, job_id: str) -> JobState:
    try:
        code = int((job_dir / LAST_WORD.format(job_id=job_id)).read_text("ascii"))
    except (OSError, ValueError):
        return JobState(
            "unknown", reason="there is no LSF here to ask, and the job left no word of its own", job_id=job_id
        )
    return JobState("ended", "COMPLETED" if code == 0 else "FAILED", exit_code=code, job_id=job_id)
