"""What every scheduler adapter has to do alike, with real jobs; and what only one with a queue can get wrong."""

import ctypes
import dataclasses
import os
import shutil
from pathlib import Path
from typing import Protocol

import pytest

from gpubench.errors import MissingToolError, SchedulerError, UsageError
from gpubench.schedulers import JobState, batch, kubernetes, local, submitted
from gpubench.schedulers.batch import BatchScheduler
from gpubench.schedulers.lsf import Lsf
from gpubench.schedulers.pbs import Pbs
from gpubench.schedulers.slurm import WORDS, Slurm
from tests.conftest import need
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.object_files import object_file
from tests.schedulers.conftest import job_directory, remembered
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hosts import until

ODD = 'o\'dd "name" $(date), `x` a=1 JobState=FAILED ü*'
HEAD = "#!/usr/bin/env bash\n#SBATCH --output=slurm-%j.log\n"
OF_LSF = "#BSUB -nnodes 1 -o lsf-%J.log\n"
"""Not in HEAD: sbatch reads such lines too, as far as it understands them."""
OF_PBS = '#PBS -S /bin/bash\n#PBS -o pbs.out\ncd "$PBS_O_WORKDIR"; exec >>"pbs-${PBS_JOBID%%.*}.log" 2>&1\n'
"""As the template has it: a job of PBS starts in the home directory."""
slurm = Slurm()
REPORT = "\n-----"
"""LSF writes one behind a job's output."""
SLEEP = "trap 'exit 130' TERM\ntouch ready\nwhile true; do sleep 0.1; done\n"


class Subject(Protocol):
    """An adapter with what a test needs to wait for its jobs."""

    def submit(self, job_dir: Path, **env: str) -> None: ...

    def state(self, job_dir: Path) -> JobState: ...

    def cancel(self, job_dir: Path) -> None: ...

    def ended(self, job_dir: Path) -> JobState:
        """Wait for the end."""


class Local:
    """The front end is the queue."""

    state, cancel = staticmethod(local.state), staticmethod(local.cancel)

    def __init__(self) -> None:
        self._jobs: dict[Path, local.Job] = {}

    def submit(self, job_dir: Path, **env: str) -> None:
        with local.acquire_machine(job_dir, lambda holder: pytest.fail(f"had to wait for {holder}")) as hold:
            self._jobs[job_dir] = local.submit(job_dir, {**os.environ, **env}, hold)

    def ended(self, job_dir: Path) -> JobState:
        self._jobs[job_dir].close()
        return local.state(job_dir)


class Queued:
    """Jobs run when nobody looks; ``directives`` are those that a script of this scheduler can't do without."""

    def __init__(self, scheduler: BatchScheduler, directives: str) -> None:
        self.state, self.cancel = scheduler.state, scheduler.cancel
        self._scheduler, self._directives = scheduler, directives

    def submit(self, job_dir: Path, **env: str) -> None:
        script = (job_dir / "job.sh").read_text()
        if self._directives not in script:
            (job_dir / "job.sh").write_text(script.replace("\n", f"\n{self._directives}", 1))
        self._scheduler.submit(job_dir, {**os.environ, **env})

    def ended(self, job_dir: Path) -> JobState:
        until(lambda: not self.state(job_dir).alive, "the end of the job", pause=0.2)
        return self.state(job_dir)


class Kubernetes:
    """Jobs run in pods; a claim shows them the job's directory."""

    state, cancel = staticmethod(kubernetes.state), staticmethod(kubernetes.cancel)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def submit(self, job_dir: Path, **env: str) -> None:
        claim = self._cluster.root / "claims" / job_dir.name
        claim.unlink(missing_ok=True)
        claim.symlink_to(job_dir)
        script = (job_dir / "job.sh").read_text()
        (job_dir / "job.yaml").write_text(object_file("g-conforms", job_dir.name, script))
        kubernetes.submit(job_dir, {**os.environ, **env})

    def ended(self, job_dir: Path) -> JobState:
        until(lambda: not kubernetes.state(job_dir).alive, "the end of the job", pause=0.2)
        return kubernetes.state(job_dir)


SCRIPTED = [
    pytest.param("local", marks=pytest.mark.integration),
    pytest.param("lsf", marks=pytest.mark.integration),
    pytest.param("pbs", marks=pytest.mark.integration),
    pytest.param("slurm", marks=pytest.mark.system),
]
ALL = [*SCRIPTED, pytest.param("kubernetes", marks=pytest.mark.system)]


def subject_of(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if request.param == "local":
        return Local()
    cluster = request.getfixturevalue(f"{request.param}_here")
    if request.param == "kubernetes":
        return Kubernetes(cluster)
    return Queued(QUEUES[request.param].scheduler, QUEUES[request.param].directives)


@pytest.fixture(params=ALL)
def subject(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    return subject_of(request, tmp_path, monkeypatch)


@pytest.fixture(params=SCRIPTED)
def scripted(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    """Those whose job is a script that runs where it stands, with the variables of whoever submits it."""
    return subject_of(request, tmp_path, monkeypatch)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where campaigns can lie: what a cluster's nodes see."""
    if not {"cluster", "slurm_here"} & set(request.fixturenames) and "[slurm" not in request.node.name:
        return tmp_path
    shared: Path = request.getfixturevalue("cluster").shared / tmp_path.name
    shared.mkdir(exist_ok=True)
    return shared


def job(place: Path, script: str, *, campaign: str = "campaign", name: str = "j001-n1", directives: str = "") -> Path:
    return job_directory(place, HEAD + directives + script, name=name, campaign=campaign)


@pytest.mark.parametrize("campaign", ["plain", ODD], ids=["plain", "odd"])
def test_a_job_runs_in_its_directory_with_the_given_environment_and_its_output_is_in_a_log(
    scripted: Subject, place: Path, campaign: str
) -> None:
    subject = scripted
    directory = job(place, 'printf "%s|" "$PWD" "$GREETING"; echo wrong >&2\n', campaign=campaign)
    assert subject.state(directory).phase == "unsubmitted"
    greeting = "two\nlines, $(x) 'q' \"d\" \\"
    subject.submit(directory, GREETING=greeting)
    ended = subject.ended(directory)
    assert (ended.phase, ended.word, ended.exit_code, ended.end) == ("ended", "COMPLETED", 0, "")
    (log,) = directory.glob("*.log")
    assert log.read_text().partition(REPORT)[0] == f"{directory}|{greeting}|wrong\n"


def test_a_running_job_has_neither_exit_code_nor_reason_and_ends_when_it_is_cancelled(
    subject: Subject, place: Path
) -> None:
    directory = job(place, SLEEP, campaign=ODD)
    subject.submit(directory)
    until((directory / "ready").exists, "the script")
    now = subject.state(directory)
    assert (now.phase, now.alive, now.exit_code, now.end, now.reason) == ("running", True, None, "", "")
    subject.cancel(directory)
    ended = subject.ended(directory)
    assert (ended.phase, ended.alive) == ("ended", False)
    assert ended.end
    subject.cancel(directory)


def test_a_job_directory_stands_for_its_last_job_whose_exit_code_is_told(subject: Subject, place: Path) -> None:
    directory = job(place, "exit 7\n")
    subject.submit(directory)
    failed = subject.ended(directory)
    assert (failed.phase, failed.word, failed.exit_code) == ("ended", "FAILED", 7)
    assert failed.end.startswith("FAILED, exit code 7")
    (directory / "job.sh").write_text(f"{HEAD}exit 0\n")
    subject.submit(directory)
    assert subject.ended(directory).exit_code == 0


@dataclasses.dataclass(frozen=True)
class Queue:
    """A batch scheduler, and what differs in its words."""

    scheduler: BatchScheduler
    client: str
    directives: str
    number: str
    """A job's, as the scheduler writes it; none has it."""
    cluster: str
    """That the clients say they talk to; empty where they don't."""
    waits: str
    """The reason of a job that waits for another one."""
    refused: tuple[tuple[str, str], tuple[str, str]]
    """Two directives that no queue takes, and what is said of each."""


QUEUES = {
    "slurm": Queue(
        *(slurm, "sbatch", "", "99999", "", "Dependency"),
        (
            ("#SBATCH --partition=nope", "partition specified: nope"),
            ("#SBATCH --nodes=9", "Node count specification invalid"),
        ),
    ),
    "lsf": Queue(
        *(Lsf(), "bsub", OF_LSF, "999", "cluster1", "Job dependency condition not satisfied"),
        (("#BSUB -q nope", "nope: No such queue"), ("#BSUB -nnodes 9", "Too many nodes requested")),
    ),
    "pbs": Queue(
        *(Pbs(), "qsub", OF_PBS, "999.pbs-server", "", "Job held, waiting for 1.pbs-server"),
        (("#PBS -q nope", "qsub: Unknown queue"), ("#PBS -l select=9", "exceeds queue and/or server resource limits")),
    ),
}


NO_HISTORY = "pbs without history"


@pytest.fixture(params=["lsf", "pbs", NO_HISTORY, SCRIPTED[-1]])
def queue(request: pytest.FixtureRequest) -> Queue:
    """With its clients on PATH."""
    name: str = request.param.partition(" ")[0]
    cluster = request.getfixturevalue(f"{name}_here")
    if request.param == NO_HISTORY:
        cluster.set(history=False)
    return QUEUES[name]


END = 'number=${PBS_JOBID:-${LSB_JOBID:-$SLURM_JOB_ID}}; trap \'echo "$?" >"end-${number%%.*}"\' EXIT\n'
"""As every rendered script keeps its exit code: a queue without a history forgets it."""


def queued(queue: Queue, place: Path, script: str, **where: str) -> Path:
    return job(place, END + script, directives=queue.directives, **where)


def over(queue: Queue, directory: Path) -> JobState:
    until(lambda: not queue.scheduler.state(directory).alive, "the end of the job", pause=0.2)
    return queue.scheduler.state(directory)


def test_jobs_wait_until_those_before_them_have_ended_whatever_became_of_them(queue: Queue, place: Path) -> None:
    first = queued(queue, place, "until [ -e go ]; do sleep 0.1; done; exit 9\n")
    second = queued(queue, place, "cat ../j001-n1/end\n", name="j002-n1")
    third = queued(queue, place, "true\n", name="j003-n1")
    numbers = [queue.scheduler.submit(first, os.environ)]
    numbers.append(queue.scheduler.submit(second, os.environ, numbers))
    queue.scheduler.submit(third, os.environ, numbers)
    until(lambda: queue.scheduler.state(second).reason == queue.waits, "the reason")
    waiting = queue.scheduler.state(second)
    assert (waiting.phase, waiting.exit_code, waiting.hosts) == ("pending", None, "")
    (first / "end").write_text("over\n")
    (first / "go").touch()
    over(queue, third)
    assert [queue.scheduler.state(one).exit_code for one in (first, second, third)] == [9, 0, 0]
    assert [log.read_text().partition(REPORT)[0].strip() for log in second.glob("*.log")] == ["over"]


def test_a_refusal_has_the_clients_words_and_leaves_the_job_before_it_as_it_was(queue: Queue, place: Path) -> None:
    (nowhere, no_such_queue), (large, too_large) = queue.refused
    options = queue.directives.partition("cd ")[0]  # none is read behind the first command
    directory = job(place, f"{nowhere}\n", directives=options)
    with pytest.raises(SchedulerError, match=f"{queue.client} refuses job campaign-j001-n1: .*{no_such_queue}"):
        queue.scheduler.submit(directory, os.environ)
    assert submitted.read(directory) is None
    (directory / "job.sh").write_text(f"{HEAD}{queue.directives}exit 4\n")
    number = queue.scheduler.submit(directory, os.environ)
    (directory / "job.sh").write_text(f"{HEAD}{options}{large}\n")
    with pytest.raises(SchedulerError, match=too_large):
        queue.scheduler.submit(directory, os.environ)
    assert queue.scheduler.state(directory).job_id == number


def test_a_job_that_is_no_longer_known_has_the_last_word_itself_and_has_failed_without_one(
    queue: Queue, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = queued(queue, place, "true\n")
    submitted.write(directory, queue.scheduler.NAME, "x", queue.number, cluster=queue.cluster)
    assert queue.scheduler.state(directory).phase == "unknown"  # it may not be shown yet
    monkeypatch.setattr(batch, "SUBMIT_UNKNOWN_S", -1.0)
    vanished = queue.scheduler.state(directory)
    why = f"{queue.scheduler.TITLE} doesn't know the job, and the job left no exit code"
    if queue.client == "sbatch":  # without accounting it never says so beyond doubt
        assert (vanished.phase, "left no exit code" in vanished.reason) == ("unknown", True)
    else:
        assert (vanished.phase, vanished.word, vanished.exit_code) == ("ended", "VANISHED", None)
        assert vanished.end == f"VANISHED: {why}"
    for code, end in ((0, ""), (143, "FAILED, exit code 143")):
        (directory / f"end-{queue.number.partition('.')[0]}").write_text(f"{code}\n")
        state = queue.scheduler.state(directory)
        assert (state.phase, state.end) == ("ended", end)


@pytest.mark.parametrize("campaign", ["plain", ODD], ids=["plain", "odd"])
def test_a_job_whose_submit_gave_no_answer_is_found_by_its_directory(
    queue: Queue, place: Path, monkeypatch: pytest.MonkeyPatch, campaign: str
) -> None:
    find_a_lost_job(queue, place, monkeypatch, campaign)


def find_a_lost_job(queue: Queue, place: Path, monkeypatch: pytest.MonkeyPatch, campaign: str) -> None:
    deaf = place / "deaf"
    deaf.mkdir()
    # The real one goes on when the deaf one is given up, as slow as it may be.
    real = f'setsid {shutil.which(queue.client)} "$@" <&0 >/dev/null 2>&1 &'
    (deaf / queue.client).write_text(f"#!/bin/bash\n{real}\nexec sleep 600\n")
    (deaf / queue.client).chmod(0o755)
    directory = queued(queue, place, "until [ -e go ]; do sleep 0.1; done; exit 6\n", campaign=campaign)
    neighbour = queued(queue, place / "elsewhere", "true\n", campaign=campaign)
    other = queue.scheduler.submit(neighbour, os.environ)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{deaf}:{os.environ['PATH']}")
        patched.setattr(batch, "DEADLINE_S", 3.0)
        patched.setattr(queue.scheduler, "SEARCH_S", 60.0)
        number = queue.scheduler.submit(directory, os.environ)
    entry = remembered(directory)
    assert entry.job_id == number != other
    (directory / "go").touch()
    assert over(queue, directory).exit_code == 6


@pytest.mark.parametrize("name", QUEUES)
def test_without_the_clients_a_submit_says_so_and_a_copy_of_a_campaign_has_its_last_word(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = QUEUES[name]
    monkeypatch.setenv("PATH", str(tmp_path))
    directory = queued(queue, tmp_path, "true\n")
    with pytest.raises(MissingToolError, match=f"there is no {queue.client} on this machine"):
        queue.scheduler.submit(directory, os.environ)
    assert queue.scheduler.state(directory).phase == "unsubmitted"
    submitted.write(directory, name, "campaign-j001-n1", queue.number)
    assert queue.scheduler.state(directory).phase == "unknown"
    (directory / f"end-{queue.number.partition('.')[0]}").write_text("0\n")
    assert queue.scheduler.state(directory).word == "COMPLETED"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lsf", r"lsid failed: LSF is down. Please wait"),
        ("pbs", r"qstat 1.pbs-server failed: Connection refused.*; is PBS up\?"),
    ],
)
def test_a_scheduler_that_is_down_is_an_error_and_nothing_is_said_to_have_ended(
    name: str, said: str, request: pytest.FixtureRequest, place: Path
) -> None:
    cluster, queue = request.getfixturevalue(f"{name}_here"), QUEUES[name]
    directory = queued(queue, place, "true\n")
    queue.scheduler.submit(directory, os.environ)
    (cluster.state / "down").touch()
    with pytest.raises(SchedulerError, match=said):
        queue.scheduler.state(directory)
    (cluster.state / "down").unlink()
    assert over(queue, directory).end == ""


@pytest.mark.parametrize(
    ("name", "variables", "hosts", "expected"),
    [
        ("lsf", {"LSB_JOBID": "7", "LSB_DJOB_HOSTFILE": "hosts"}, "launch a1 a1 a2 a2", ("7", 2, "lsf-7.log", "end-7")),
        ("pbs", {"PBS_JOBID": "7.s", "PBS_NODEFILE": "hosts"}, "a1 a1 a2 a2", ("7.s", 2, "pbs-7.log", "end-7")),
    ],
)
def test_an_allocation_counts_each_of_its_compute_nodes_once(
    name: str, variables: dict[str, str], hosts: str, expected: tuple[str, int, str, str], tmp_path: Path
) -> None:
    (tmp_path / "hosts").write_text(hosts.replace(" ", "\n") + "\n")
    (number, _), (file, _) = variables.items()
    around, scheduler = {**variables, file: str(tmp_path / "hosts")}, QUEUES[name].scheduler
    found = scheduler.current_allocation(around)
    assert found is not None
    assert (found.job_id, found.nodes, found.log, found.exit_code_file) == expected
    assert [scheduler.current_allocation({key: around[key]}) for key in (number, file)] == [None, None]


@pytest.mark.parametrize("name", ["100%", "back\\slash"])
def test_a_directory_whose_name_slurm_would_expand_is_refused(tmp_path: Path, name: str) -> None:
    directory = job(tmp_path, "true\n", campaign=name)
    with pytest.raises(UsageError, match=r"Slurm can't write logs into .*; name another --outputs"):
        slurm.submit(directory, os.environ)


@pytest.mark.system
def test_the_database_remembers_what_the_controller_has_forgotten(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SlurmCluster(accounting=True) as cluster:
        for name, value in cluster.env().items():
            monkeypatch.setenv(name, value)
        directory = job(cluster.shared, "exit 5\n")
        slurm.submit(directory, os.environ)
        until(lambda: not slurm.state(directory).alive, "the end of the job", pause=0.2)
        shown = slurm.state(directory)
        until(lambda: "FAILED" in cluster.say("sacct", "-nXo", "State"), "the job in the database", pause=0.2)
        cluster.controller_down()
        shutil.rmtree(cluster.root / "state")
        (cluster.root / "state").mkdir()
        cluster.controller_up()
        assert cluster.run(["scontrol", "show", "job", shown.job_id]).returncode != 0
        known = slurm.state(directory)
    assert (known.word, known.exit_code, known.hosts) == ("FAILED", 5, shown.hosts)


@pytest.mark.system
def test_a_job_killed_for_its_memory_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    with SlurmCluster(memory_limits=True) as cluster:
        for name, value in cluster.env().items():
            monkeypatch.setenv(name, value)
        directory = job(cluster.shared, "#SBATCH --mem=100\nexec python3 -c 'bytearray(2**30)'\n")
        slurm.submit(directory, os.environ)
        until(lambda: not slurm.state(directory).alive, "the end of the job", pause=0.2)
        ended = slurm.state(directory)
    assert (ended.phase, ended.word) == ("ended", "OUT_OF_MEMORY")
    assert ended.end.startswith("OUT_OF_MEMORY")


@pytest.mark.system
def test_a_controller_that_does_not_answer_is_an_error_within_the_deadline(
    slurm_here: SlurmCluster, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, other = job(place, "true\n"), job(place, "true\n", name="j002-n1")
    slurm.submit(directory, os.environ)
    until(lambda: not slurm.state(directory).alive, "the end of the job", pause=0.2)
    slurm_here.controller_down()
    try:
        with monkeypatch.context() as patched:
            patched.setattr(batch, "DEADLINE_S", 2.0)
            patched.setattr(slurm, "SEARCH_S", 0.0)
            with pytest.raises(SchedulerError, match=r"scontrol didn't answer within 2 s; is the controller up\?"):
                slurm.state(directory)
            with pytest.raises(SchedulerError, match="sbatch didn't answer within 2 s"):
                slurm.submit(other, os.environ)
    finally:
        slurm_here.controller_up()
    assert slurm.state(directory).end == ""
    assert slurm.state(other).phase == "unknown"


@pytest.mark.system
def test_every_word_of_the_installed_slurm_is_known() -> None:
    """``job_state_string`` of its library, for every base state and every flag that slurm.h may name."""
    names = ("slurm-wlm/libslurmfull.so", "libslurm.so.*")
    libraries = [path for name in names for path in Path("/usr/lib").glob(f"*/{name}")]
    need(bool(libraries), "Slurm's library (requirements/system.sh)")
    name_of = ctypes.CDLL(str(libraries[0])).slurm_job_state_string
    name_of.restype = ctypes.c_char_p
    words = {name_of(code).decode() for code in (*range(16), *(1 << bit for bit in range(8, 32)))}
    assert {"PENDING", "OUT_OF_MEMORY", "REVOKED", "STAGE_OUT"} <= words
    assert words - {"?"} <= WORDS.keys()


@pytest.mark.parametrize("word", [word for word, known in WORDS.items() if known.phase == "ended"])
def test_every_end_that_the_database_remembers_has_its_exit_code(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, body in {
        "scontrol": "echo Invalid job id specified >&2; exit 1",
        "sacct": f"echo '{word} by 1000|0:9|n1'",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    directory = job(tmp_path, "true\n")
    submitted.write(directory, "slurm", "campaign-j001-n1", "12")
    state = slurm.state(directory)
    assert (state.phase, state.word, state.exit_code) == ("ended", word, 137)


SINFO = """\
debug|idle|2
batch*|idle|3
batch*|mix|4
batch*|alloc|5
batch*|drain|1
batch*|idle*|2
batch*|mix-|6
batch*|plnd|1
batch*|idle~|8
batch*|idle@|1
batch*|alloc$|1
batch*|resv|4
"""
"""Short states and suffixes of sinfo(1), NODE STATE CODES."""


def sinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    (tmp_path / "sinfo").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")


def test_slurms_nodes_that_take_jobs_are_counted_by_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sinfo(tmp_path, monkeypatch, f"cat <<'END'\n{SINFO}END")
    assert Slurm().count_nodes("") == (19, 17)
    sinfo(tmp_path, monkeypatch, """[ "$2" = --partition=debug ] && echo 'debug|idle|2'""")
    assert Slurm().count_nodes("debug") == (2, 0)
    sinfo(tmp_path, monkeypatch, "true")
    with pytest.raises(SchedulerError, match="Slurm has no partition gone"):
        Slurm().count_nodes("gone")
    sinfo(tmp_path, monkeypatch, "echo 'slurm_load_partitions: no controller' >&2; exit 1")
    with pytest.raises(SchedulerError, match="sinfo failed: slurm_load_partitions: no controller"):
        Slurm().count_nodes("")


def test_nodes_of_other_schedulers_are_not_counted() -> None:
    with pytest.raises(UsageError, match="the nodes of LSF aren't counted; say how many: --nodes N"):
        Lsf().count_nodes("")
