"""Scheduler ``slurm``: sbatch, scontrol, sacct where there is accounting, scancel.

What slurmctld has forgotten (MinJobAge, five minutes by default) is asked of sacct; without an accounting database, and
on a copy of the campaign far from the site, the job's own last word counts, which its script writes on exit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpubench.errors import MissingToolError, SchedulerError
from gpubench.schedulers import submitted
from gpubench.schedulers.client import call, said
from gpubench.schedulers.state import JobState, Phase

NAME = "slurm"
CANCEL_S = 60.0
LAST_WORD = "end-{job_id}"
"""File in the job's directory: the script's exit code."""

_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
_RUNNING = {"RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT", "STOPPED", "SUSPENDED", "RESIZING"}
_FIELD = re.compile(r"(?:^| )(\w+(?::\w+)?)=(\S*)")
_KEPT = ("SLURM_CONF", "SLURM_CONF_SERVER")


def submit(job_dir: Path, environ: Mapping[str, str], after: Sequence[str] = ()) -> str:
    """``sbatch`` from the job's directory; see ``Detached.submit``."""
    name = job_name(job_dir)
    submitted.write(job_dir, NAME, name)
    # sbatch reads SBATCH_* and, inside an allocation, SLURM_* as options that beat those of the script.
    env = {
        key: value
        for key, value in environ.items()
        if key in _KEPT or not key.startswith(("SBATCH_", "SLURM_", "SRUN_"))
    }
    dependency = [f"--dependency=afterok:{':'.join(after)}", "--kill-on-invalid-dep=yes"] if after else []
    words = ["sbatch", "--parsable", f"--chdir={job_dir.resolve()}", f"--job-name={name}", *dependency, "job.sh"]
    try:
        done = call(words, env=env, cwd=job_dir)
    except SchedulerError:
        raise  # it may have been submitted all the same: `state` finds it by its name
    except BaseException:
        submitted.forget(job_dir)
        raise
    if done.returncode:
        submitted.forget(job_dir)
        raise SchedulerError(f"sbatch refuses job {name}: {said(done)}", then=f"the script is {job_dir / 'job.sh'}")
    job_id = done.stdout.strip().splitlines()[-1].partition(";")[0]
    submitted.write(job_dir, NAME, name, job_id)
    return job_id


def job_name(job_dir: Path) -> str:
    """``<campaign>-<job>``: finds a job whose id nobody wrote down."""
    campaign = job_dir.resolve().parents[1].name
    return f"{campaign}-{job_dir.name}"


def state(job_dir: Path) -> JobState:
    """See ``Scheduler.state``."""
    entry = submitted.read(job_dir)
    if entry is None:
        return JobState("unsubmitted")
    try:
        job_id = entry.job_id or _id_of(entry.name)
        if not job_id:
            return JobState(
                "unknown", reason=f"the front end died while it submitted {entry.name}; squeue knows no such job"
            )
        return _controller(job_id) or _accounting(job_id) or _last_word(job_dir, job_id)
    except MissingToolError:
        return _last_word(job_dir, entry.job_id)


def cancel(job_dir: Path) -> None:
    """``scancel``, then wait for the end."""
    now = state(job_dir)
    if not now.alive:
        return
    done = call(["scancel", now.job_id])
    if done.returncode:
        raise SchedulerError(f"scancel {now.job_id} failed: {said(done)}")
    deadline = time.monotonic() + CANCEL_S
    while state(job_dir).alive:
        if time.monotonic() > deadline:
            raise SchedulerError(
                f"job {now.job_id} still runs {CANCEL_S:g} s after scancel",
                then=f"look at it: scontrol show job {now.job_id}",
            )
        time.sleep(0.5)


def _id_of(name: str) -> str:
    done = call(["squeue", "--noheader", "--states=all", f"--name={name}", "--format=%i"])
    return (done.stdout.split() or [""])[-1] if not done.returncode else ""


def _controller(job_id: str) -> JobState | None:
    done = call(["scontrol", "--oneliner", "show", "job", job_id])
    if done.returncode:
        if "Invalid job id" in done.stderr + done.stdout:
            return None
        raise SchedulerError(
            f"scontrol show job {job_id} failed: {said(done)}", then="is slurmctld up? try again later"
        )
    fields = dict(_FIELD.findall(done.stdout.splitlines()[0]))
    return _state(
        fields["JobState"], fields.get("ExitCode", ""), fields.get("Reason", ""), job_id, fields.get("NodeList", "")
    )


def _accounting(job_id: str) -> JobState | None:
    done = call(
        ["sacct", "--noheader", "--allocations", "--parsable2", f"--jobs={job_id}", "--format=State,ExitCode,NodeList"]
    )
    rows = done.stdout.split("\n")[0].split("|")
    if done.returncode or len(rows) != 3:  # no accounting here, or it doesn't know the job
        return None
    return _state(rows[0], rows[1], "", job_id, rows[2])


def _last_word(job_dir: Path, job_id: str) -> JobState:
    try:
        code = int((job_dir / LAST_WORD.format(job_id=job_id)).read_text("ascii"))
    except (OSError, ValueError):
        return JobState(
            "unknown", reason="Slurm no longer knows the job, and it left no word of its own", job_id=job_id
        )
    return JobState("ended", "COMPLETED" if code == 0 else "FAILED", exit_code=code, job_id=job_id)


def _state(word: str, code: str, reason: str, job_id: str, hosts: str) -> JobState:
    """``CANCELLED by 0`` is CANCELLED; an exit code reads ``CODE:SIGNAL``."""
    word = word.split(maxsplit=1)[0]
    phase: Phase = "pending" if word in _WAITING else "running" if word in _RUNNING else "ended"
    first, _, signal = code.partition(":")
    number = (int(first) or (128 + int(signal) if signal and signal != "0" else 0)) if first.isdigit() else None
    return JobState(phase, word, reason, number, job_id, "" if hosts in ("(null)", "None assigned") else hosts)
