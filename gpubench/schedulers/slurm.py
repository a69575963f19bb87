"""Scheduler ``slurm``: sbatch, scontrol, sacct where there is accounting, scancel.

What slurmctld has forgotten (MinJobAge, five minutes by default) is asked of sacct; without an accounting database, and
on a copy of the campaign far from the site, the job's own last word counts, which its script writes on exit.

Found on a real Slurm (22.05), and kept by the tests:

* ``squeue --name`` takes a list parted by commas, so no job whose name holds one is ever found by it. A job whose
  number was not written down is found by its working directory, which no other campaign has; names may be equal.
* ``scontrol`` puts values in as they are: a directory called ``a JobState=FAILED`` looks like a field. Only what stands
  before ``Command=`` is believed, where no text of ours stands but the name, which holds no blank; and ``WorkDir=``
  with the directory that we expect behind it.
* ``%`` and a backslash in the directory's name are read as patterns of the log's name; the job fails without a word
  (JobLaunchFailure, exit code ``0:53``). So does one whose directory isn't there on the node.
* The exit code of a job that waits or runs reads ``0:0``.
* Clients hang for minutes while the controller is down, or give up with ``Unable to contact slurm controller``.
* ``scancel`` sends SIGTERM to every process of the job at once, and SIGKILL after KillWait (30 s by default).
* ``--signal=B:TERM@S`` comes up to a minute early (``@5`` came after 40 s of 60).
* A lost node ends the whole job: a script on another node gets SIGTERM, and the state is still NODE_FAIL.
* Job numbers are a cluster's own. sbatch names the cluster (``NUMBER;CLUSTER``) where one was chosen, by the script, by
  SBATCH_CLUSTERS or by SLURM_CLUSTERS; the other clients then need ``--clusters``, which needs slurmdbd.

From Slurm's source (26.05): ``job_state_string`` (src/common/slurm_protocol_defs.c) has every word that clients print,
slurm.h and doc/html/job_state_codes.shtml say what it means; ``slurm_errtab`` (src/common/slurm_errno.c) has the
errors, and ``slurm_submit_batch_job`` (src/api/submit.c) shows which of them come when the request may have arrived.

Jobs run one after the other whatever became of the first, so they depend by ``afterany``, not ``afterok``.
"""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpubench.errors import MissingToolError, SchedulerError, UsageError
from gpubench.plan.node_kinds import NodeKind
from gpubench.schedulers.batch import STOPPED, Accepted, Allocation, BatchScheduler, call, output_line
from gpubench.schedulers.state import JobState, Word, judged
from gpubench.schedulers.submitted import Submitted

WORDS = {
    # Base states: a job has one of them.
    "PENDING": Word("pending"),
    "RUNNING": Word("running"),
    "SUSPENDED": Word("running", "suspended: it holds its nodes, and its processes are stopped"),
    "COMPLETED": Word("ended"),
    "CANCELLED": Word("ended"),
    "FAILED": Word("ended"),
    "TIMEOUT": Word("ended"),
    "NODE_FAIL": Word("ended"),
    "PREEMPTED": Word("ended"),
    "BOOT_FAIL": Word("ended"),
    "DEADLINE": Word("ended"),
    "OUT_OF_MEMORY": Word("ended"),
    # Flags: shown instead of the base state.
    "COMPLETING": Word("running"),
    "CONFIGURING": Word("pending"),
    "EXPEDITING": Word("pending", "to be requeued before all other jobs"),
    "REQUEUED": Word("pending", "being requeued"),
    "REQUEUE_FED": Word("pending", "being requeued by its federation"),
    "REQUEUE_HOLD": Word("pending", "requeued and held until somebody releases it"),
    "SPECIAL_EXIT": Word("pending", "requeued and held for a special exit code"),
    "RESV_DEL_HOLD": Word("pending", "held, because its reservation was deleted"),
    "REVOKED": Word("pending", "another cluster of the federation has it"),
    "RESIZING": Word("running"),
    "SIGNALING": Word("running"),
    "STAGE_OUT": Word("running"),
    "STOPPED": Word("running", "stopped by SIGSTOP: it holds its nodes"),
}
"""Every word of ``job_state_string``. REVOKED is the state of a federated job on the cluster where it was submitted
while it waits or runs on a sibling (doc/html/federation.shtml)."""
_TAKE_JOBS = {"alloc", "comp", "idle", "mix", "plnd"}
"""Short states of nodes that take our jobs, now or later; ``resv`` takes others (sinfo(1), NODE STATE CODES). A suffix
``-`` says that the next job is planned; with another one a node doesn't answer, is off, restarts or is maintained."""
_FIELD = re.compile(r"(?:^| )(\w+(?::\w+)?)=(\S*)")
_CHOSEN_CLUSTERS = re.compile(r"^#SBATCH(?:\s.*)?\s(?:--clusters?(?:=|\s+)|-M\s*)[\"']?([\w.,-]+)", re.MULTILINE)
_CLUSTER_NAME = re.compile(r"^ClusterName\s*=\s*(\S+)", re.MULTILINE)
_GRES = re.compile(r"(?:[^,(]|\([^)]*\))+")
_GRES_COUNT = re.compile(r"(\d+)([KMGTP]?)", re.IGNORECASE)
_MIG_SLICE = re.compile(r"\d+g\.\d+gb", re.IGNORECASE)
"""In the type of a slice of a GPU (NVIDIA's profiles: ``1g.10gb``)."""
_NO_SUCH_JOB = "Invalid job id"
_NOTHING = ("None", "(null)", "None assigned")
"""Slurm's words where a field has nothing to say, like the reason of a job that runs."""


class Slurm(BatchScheduler):
    NAME = "slurm"
    TITLE = "Slurm"
    SUBMIT = "sbatch"
    ALLOCATE = "salloc --nodes={nodes}"
    LIST = "squeue"
    QUEUE = "partition"
    LOOK = "scontrol {clusters}show job {job_id}"
    # sbatch reads SBATCH_* and, inside an allocation, SLURM_* as options that beat those of the script.
    OF_A_JOB = ("SBATCH_", "SLURM_", "SRUN_")
    PASSED_ON = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT")
    # From squeue(1), sacct(1), scancel(1), scontrol(1), sinfo(1): filters, formats, and clusters.
    OF_QUERIES = ("SQUEUE_", "SACCT_", "SCANCEL_", "SCONTROL_", "SINFO_")
    IDS = (
        re.compile(r"^(?P<id>\d+)(?:;(?P<cluster>\S+))?[ \t]*$", re.MULTILINE),
        re.compile(r"^Submitted batch job (?P<id>\d+)(?: on cluster (?P<cluster>\S+))?", re.MULTILINE),
    )
    # Errors behind the request's departure, in the words of slurm_errtab and, for sockets, of strerror.
    UNCLEAR_ANSWERS = (
        "timed out",
        "Message send failure",
        "Message receive failure",
        "(send failure)",
        "(receive failure)",
        "ommunication shutdown failure",
        "(shutdown failure)",
        "Unexpected message received",
        "Header lengths are longer than data received",
        "Insane message length",
        "Zero Bytes were transmitted or received",
        "Incompatible versions of client and server code",
        "Protocol authentication error",
        "Kernel reported delayed socket error",
        "Process is shutting down and closing all communications",
        "Connection forced closed by quiesce timeout",
        "Connection reset by peer",
        "Broken pipe",
        "Transport endpoint is not connected",
        "Interrupted system call",
        "Resource temporarily unavailable",
    )

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    def check(self, job_dir: Path) -> None:
        """Slurm reads ``%`` and backslashes in the directory's name as patterns."""
        if {"%", "\\"} & set(str(job_dir.resolve())):
            raise UsageError(
                f"Slurm can't write logs into {job_dir.resolve()}: it reads % and \\ as patterns",
                then="name another --outputs",
            )

    def cluster_of(self, job_dir: Path, environ: Mapping[str, str]) -> str:
        """The clusters that the script or the shell chooses, as a list parted by commas, else this machine's own."""
        return _of_the_script(job_dir) or _of_the_shell(environ) or self._own_cluster()

    def run_submit(
        self, job_dir: Path, name: str, environ: Mapping[str, str], after: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        """``sbatch`` from the job's directory, to the script's clusters, else to those that the shell has chosen."""
        chosen = "" if _of_the_script(job_dir) else _of_the_shell(environ)
        clusters = [f"--clusters={chosen}"] if chosen else []
        dependency = [f"--dependency=afterany:{':'.join(after)}"] if after else []
        options = [f"--chdir={job_dir.resolve()}", f"--job-name={name}", *clusters, *dependency]
        return call(["sbatch", "--parsable", *options, "job.sh"], env=self.environment(environ), cwd=job_dir)

    def current_allocation(self, environ: Mapping[str, str]) -> Allocation | None:
        job_id, nodes = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_JOB_NUM_NODES", "")
        if not job_id or not nodes.isdigit():
            return None
        cluster = environ.get("SLURM_CLUSTER_NAME", "")
        return self.allocation(job_id, int(nodes), ("SLURM_JOB_NUM_NODES", "SLURM_NNODES"), cluster)

    def count_nodes(self, queue: str) -> tuple[int, int]:
        chosen = [f"--partition={queue}"] if queue else []
        done = self.ask("sinfo", "--noheader", *chosen, "--format=%P|%t|%D")
        if done.returncode:
            raise self.no_answer("sinfo", done)
        rows = [line.split("|") for line in done.stdout.splitlines() if line.count("|") == 2]
        counts = [(state, int(number)) for name, state, number in rows if queue or name.endswith("*")]
        if not counts:
            raise SchedulerError(f"Slurm has no partition {queue}" if queue else "Slurm has no default partition")
        usable = sum(number for state, number in counts if state.removesuffix("-") in _TAKE_JOBS)
        return usable, sum(number for _, number in counts) - usable

    def node_kinds(self) -> list[NodeKind]:
        """See ``BatchScheduler.node_kinds``; of a cluster's rows the ``CLUSTER:`` lines between them say nothing."""
        done = self.ask("sinfo", "--noheader", "--format=%P|%D|%c|%m|%G|%l")
        if done.returncode:
            raise self.no_answer("sinfo", done)
        rows = (line.strip().split("|") for line in done.stdout.splitlines() if line.count("|") == 5)
        return [
            NodeKind(
                queue=queue.rstrip("*"),
                default=queue.endswith("*"),
                nodes=_number(nodes),
                cores=_number(cores),
                memory_mib=_number(memory),
                gpus=whole_gpus(resources),
                resources="no GRES" if resources == "(null)" else resources,
                limit=f"at most {limit}",
            )
            for queue, nodes, cores, memory, resources, limit in rows
        ]

    def find(self, job: Submitted) -> Accepted | None:
        """See ``BatchScheduler.find``: in the queue, then in the database, on each cluster that it may be on."""
        queue = ("--noheader", "--all", "--states=all", f"--user={job.uid}", "--format=%A|%j|%Z")
        # As long ago as a campaign may last; by default sacct tells of today only.
        database = ("--starttime=now-30days", f"--user={job.uid}", "--format=JobIDRaw,JobName,WorkDir")
        for cluster in job.cluster.split(","):
            clusters = self._clusters(cluster)
            done = self.ask("squeue", *clusters, *queue)
            if done.returncode:
                raise self.no_answer("squeue", done)
            rows = [*done.stdout.splitlines(), *self._sacct(*clusters, *database).stdout.splitlines()]
            for number, name, directory in (row.split("|", 2) for row in rows if row.count("|") >= 2):
                if number.isdigit() and name == job.name and directory == job.directory:
                    return Accepted(number, cluster)
        return None

    def query(self, job: Submitted) -> JobState:
        """The controller of the job's cluster; of a job that it has forgotten, the database.

        A job that the controller doesn't know and that runs by the database (a runaway job, sacctmgr(1)) is unknown.
        """
        clusters = self._clusters(job.cluster)
        command = ["scontrol", *clusters, "--all", "--oneliner", "show", "job", job.job_id]
        shown = self.ask(*command)
        fields = dict(_FIELD.findall(shown.stdout.partition(" Command=")[0]))
        if shown.returncode == 0 and "JobState" in fields:
            return self._by_controller(job, fields, shown.stdout)
        if not shown.returncode or _NO_SUCH_JOB not in shown.stderr + shown.stdout:
            raise self.no_answer(" ".join(command), shown)
        done = self._sacct(*clusters, f"--jobs={job.job_id}", "--format=State,ExitCode,NodeList,UID,WorkDir")
        remembered = self._by_accounting(job, done)
        if remembered is not None and (remembered.over or remembered.phase == "unknown"):
            return remembered
        runs = f"sacct says {remembered.word}, as of a runaway job" if remembered else "sacct knows no such job"
        runs = output_line(done) if done.returncode else runs
        reason = f"'{' '.join(command)}' says {output_line(shown)!r}, {runs}, and the job left no exit code"
        return JobState("unknown", remembered.word if remembered else "", reason, None, job.job_id)

    def kill_command(self, job: Submitted) -> list[str]:
        return ["scancel", *self._clusters(job.cluster), job.job_id]

    def look_command(self, job: Submitted) -> str:
        clusters = "".join(f"{word} " for word in self._clusters(job.cluster))
        return self.LOOK.format(job_id=job.job_id, clusters=clusters)

    def _clusters(self, cluster: str) -> list[str]:
        """The option with which clients ask ``cluster``; none for this machine's own, which needs no database."""
        return [f"--clusters={cluster}"] if cluster and cluster != self._own_cluster() else []

    def _own_cluster(self) -> str:
        """The name of the cluster that clients ask without an option; empty where it can't be asked for."""
        machine = (os.environ.get("SLURM_CONF", ""), os.environ.get("PATH", ""))
        if machine not in self._names:
            done = self.ask("scontrol", "show", "config")
            match = _CLUSTER_NAME.search(done.stdout)
            if done.returncode or not match:
                return ""
            self._names[machine] = match[1]
        return self._names[machine]

    def _by_controller(self, job: Submitted, fields: Mapping[str, str], text: str) -> JobState:
        owner = fields.get("UserId", "")
        user = job.user if owner.endswith(f"({job.uid})") else owner
        where = re.search(rf" WorkDir={re.escape(job.directory)}(?=\s|$)", text)
        directory = job.directory if where else text.partition(" WorkDir=")[2].partition(" ")[0].strip()
        other = self.not_ours(job, user, directory)
        code, reason, hosts = (fields.get(name, "") for name in ("ExitCode", "Reason", "NodeList"))
        return other or _state(fields["JobState"], code, reason, job.job_id, hosts)

    def _sacct(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Of whole jobs; a machine without ``sacct`` is one without accounting."""
        try:
            return self.ask("sacct", "--noheader", "--allocations", "--parsable2", *arguments)
        except MissingToolError as error:
            return subprocess.CompletedProcess(arguments, 127, "", error.what)

    def _by_accounting(self, job: Submitted, done: subprocess.CompletedProcess[str]) -> JobState | None:
        """None where there is no accounting here, or it doesn't know the job."""
        rows = done.stdout.split("\n")[0].split("|", 4)
        if done.returncode or len(rows) < 3:
            return None
        word, code, hosts, user, directory = [*rows, "", ""][:5]
        return self.not_ours(job, user, directory) or _state(word, code, "", job.job_id, hosts)


def _of_the_script(job_dir: Path) -> str:
    chosen = _CHOSEN_CLUSTERS.findall((job_dir / "job.sh").read_text(encoding="utf-8"))
    return str(chosen[-1]) if chosen else ""


def _of_the_shell(environ: Mapping[str, str]) -> str:
    """The clusters that the user has chosen for all commands; of both variables sbatch believes the last."""
    return environ.get("SLURM_CLUSTERS", "") or environ.get("SBATCH_CLUSTERS", "")


def _number(text: str) -> int:
    """``64+`` is 64: of nodes that differ sinfo shows the least."""
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0


def parse_gres(text: str) -> list[tuple[str, str, int]]:
    """Name, type (empty: none) and number of each generic resource of a node; none for ``(null)``.

    ``sinfo --format=%G`` and ``scontrol show node`` write them as slurm.conf(5), ``Gres``, says:
    ``NAME[:TYPE][:no_consume]:COUNT[K|M|G|T|P]``, parted by commas. Behind an entry may stand sockets or indexes of the
    devices (``(S:0-3)``, ``(IDX:0,2)``), which may hold commas. An entry without a count is one.
    """
    entries = []
    for entry in [] if text.strip().lower() in ("", "(null)", "n/a") else _GRES.findall(text):
        name, *others = entry.partition("(")[0].strip().split(":")
        count = _GRES_COUNT.fullmatch(others[-1]) if others else None
        number = int(count[1]) * 1024 ** " KMGTP".index(count[2].upper() or " ") if count else 1
        types = [part for part in (others[:-1] if count else others) if part != "no_consume"]
        entries.append((name, ":".join(types), number))
    return entries


def whole_gpus(text: str) -> int | None:
    """How many whole GPUs a node has; None where entries are slices of GPUs, so that nothing tells it."""
    gpus = [(kind, number) for name, kind, number in parse_gres(text) if name == "gpu"]
    return None if any(_MIG_SLICE.search(kind) for kind, _ in gpus) else sum(number for _, number in gpus)


def _state(word: str, code: str, reason: str, job_id: str, hosts: str) -> JobState:
    """``CANCELLED by 0`` is CANCELLED; an exit code reads ``CODE:SIGNAL``."""
    word = word.partition(" ")[0]
    number = _exit_code(code)
    if number == STOPPED and reason == "NonZeroExitCode":
        reason = "it was asked to end: by scancel, or because its time was nearly over"
    reason, hosts = ("" if text in _NOTHING else text for text in (reason, hosts))
    if word == "CANCELLED":
        reason = reason or "it was ended by scancel"
    return judged(WORDS, word, job_id=job_id, hosts=hosts, reason=reason, exit_code=number, title="Slurm")


def _exit_code(text: str) -> int | None:
    """``CODE:SIGNAL`` as a shell would say it."""
    code, _, signal = text.partition(":")
    if not code.isdigit():
        return None
    return int(code) or (128 + int(signal) if signal.isdigit() and signal != "0" else 0)
