"""Scheduler ``slurm``: sbatch, scontrol, sacct where there is accounting, scancel.

What slurmctld has forgotten (MinJobAge, five minutes by default) is asked of sacct; without an accounting database, and
on a copy of the campaign far from the site, the job's own last word counts, which its script writes on exit.

Found on a real Slurm (22.05), and kept by the tests:

* ``squeue --name`` takes a list parted by commas, so no job whose name holds one is ever found by it. A job whose
  number was not written down is found by its working directory, which no other campaign has; names may be equal.
* ``scontrol`` puts values in as they are: a directory called ``a JobState=FAILED`` looks like a field. Only what stands
  before ``Command=`` is believed, where no text of ours stands but the name, which holds no blank.
* ``%`` and a backslash in the directory's name are read as patterns of the log's name; the job fails without a word
  (JobLaunchFailure, exit code ``0:53``). So does one whose directory isn't there on the node.
* The exit code of a job that waits or runs reads ``0:0``.
* Clients hang for minutes while the controller is down, or give up with ``Unable to contact slurm controller``.
* ``scancel`` sends SIGTERM to every process of the job at once, and SIGKILL after KillWait (30 s by default).
* ``--signal=B:TERM@S`` comes up to a minute early (``@5`` came after 40 s of 60).
* A lost node ends the whole job: a script on another node gets SIGTERM, and the state is still NODE_FAIL.

Not found here, but known: a busy controller lets sbatch say ``Socket timed out`` and accepts the job nevertheless.
Jobs run one after the other whatever became of the first, so they depend by ``afterany``, not ``afterok``.
"""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpubench.errors import SchedulerError, UsageError
from gpubench.schedulers.batch import STOPPED, Allocation, BatchScheduler, call, said
from gpubench.schedulers.state import JobState, Phase

_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
_RUNNING = {"RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT", "STOPPED", "SUSPENDED", "RESIZING"}
_TAKE_JOBS = {"alloc", "comp", "idle", "mix", "resv"}
_FIELD = re.compile(r"(?:^| )(\w+(?::\w+)?)=(\S*)")
_UNHEARD = "timed out"
_NOTHING = ("None", "(null)", "None assigned")
"""Slurm's words where a field has nothing to say, like the reason of a job that runs."""


class Slurm(BatchScheduler):
    """See the module."""

    NAME = "slurm"
    TITLE = "Slurm"
    SUBMIT = "sbatch"
    ALLOCATE = "salloc --nodes={nodes}"
    KILL = "scancel"
    LIST = "squeue"
    LOOK = "scontrol show job {job_id}"
    # sbatch reads SBATCH_* and, inside an allocation, SLURM_* as options that beat those of the script.
    OF_A_JOB = ("SBATCH_", "SLURM_", "SRUN_")
    PASSED_ON = ("SLURM_CONF", "SLURM_CONF_SERVER")
    FORGETS_ONLY_ENDED = False

    def check(self, job_dir: Path) -> None:
        """Slurm reads ``%`` and backslashes in the directory's name as patterns."""
        if {"%", "\\"} & set(str(job_dir.resolve())):
            raise UsageError(
                f"Slurm can't write logs into {job_dir.resolve()}: it reads % and \\ as patterns",
                then="name another --outputs",
            )

    def run_submit(
        self, job_dir: Path, name: str, environ: Mapping[str, str], after: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        """``sbatch`` from the job's directory."""
        dependency = [f"--dependency=afterany:{':'.join(after)}"] if after else []
        words = ["sbatch", "--parsable", f"--chdir={job_dir.resolve()}", f"--job-name={name}", *dependency, "job.sh"]
        return call(words, env=environ, cwd=job_dir)

    def submitted_id(self, done: subprocess.CompletedProcess[str]) -> str:
        """``NUMBER`` or ``NUMBER;CLUSTER`` in the last line."""
        if (done.returncode and _UNHEARD in done.stderr) or not (done.returncode or done.stdout.strip()):
            raise SchedulerError(
                f"sbatch got no answer: {said(done)}", then="gpubench status shows whether Slurm received the job"
            )
        return "" if done.returncode else done.stdout.strip().splitlines()[-1].partition(";")[0]

    def current_allocation(self, environ: Mapping[str, str]) -> Allocation | None:
        """See ``QueuedScheduler``."""
        job_id, nodes = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_JOB_NUM_NODES", "")
        if not job_id or not nodes.isdigit():
            return None
        return self.allocation(job_id, int(nodes), ("SLURM_JOB_NUM_NODES", "SLURM_NNODES"))

    def count_nodes(self, queue: str) -> tuple[int, int]:
        """See ``BatchScheduler.count_nodes``; a star behind a state: the node doesn't answer."""
        chosen = [f"--partition={queue}"] if queue else []
        done = call(["sinfo", "--noheader", *chosen, "--format=%P|%t|%D"])
        if done.returncode:
            raise self.no_answer("sinfo", done)
        rows = [line.split("|") for line in done.stdout.splitlines() if line.count("|") == 2]
        counts = [(state, int(number)) for name, state, number in rows if queue or name.endswith("*")]
        if not counts:
            raise SchedulerError(f"Slurm has no partition {queue}" if queue else "Slurm has no default partition")
        usable = sum(number for state, number in counts if state in _TAKE_JOBS)
        return usable, sum(number for _, number in counts) - usable

    def find(self, job_dir: Path) -> str:
        """See ``BatchScheduler.find``."""
        done = call(["squeue", "--noheader", "--states=all", f"--user={os.getuid()}", "--format=%A %Z"])
        if done.returncode:
            raise self.no_answer("squeue", done)
        rows = (line.partition(" ") for line in done.stdout.splitlines())
        return max((number for number, _, directory in rows if directory == str(job_dir)), key=int, default="")

    def query(self, job_id: str) -> JobState | None:
        """The controller; of a job that it has forgotten, the database."""
        return self._controller(job_id) or _accounting(job_id)

    def _controller(self, job_id: str) -> JobState | None:
        done = call(["scontrol", "--oneliner", "show", "job", job_id])
        if done.returncode:
            if "Invalid job id" in done.stderr + done.stdout:
                return None
            raise self.no_answer(f"scontrol show job {job_id}", done)
        fields = dict(_FIELD.findall(done.stdout.partition(" Command=")[0]))
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


def _state(word: str, code: str, reason: str, job_id: str, hosts: str) -> JobState:
    """``CANCELLED by 0`` is CANCELLED; an exit code reads ``CODE:SIGNAL``."""
    word = word.split(maxsplit=1)[0]
    phase: Phase = "pending" if word in _WAITING else "running" if word in _RUNNING else "ended"
    number = _exit_code(code) if phase == "ended" else None
    if number == STOPPED and reason == "NonZeroExitCode":
        reason = "it was asked to end: by scancel, or because its time was nearly over"
    reason, hosts = ("" if text in _NOTHING else text for text in (reason, hosts))
    return JobState(phase, word, reason, number, job_id, hosts)


def _exit_code(text: str) -> int | None:
    """``CODE:SIGNAL`` as a shell would say it."""
    code, _, signal = text.partition(":")
    if not code.isdigit():
        return None
    return int(code) or (128 + int(signal) if signal.isdigit() and signal != "0" else 0)
