"""Which job is asked for, and what is done when its scheduler can't tell how it stands: no job is submitted twice.

The answers are real ones; where they come from stands beside them. Real clusters: ``test_two_slurm_clusters.py``.
"""

import dataclasses
import datetime as dt
import json
import os
import re
import shutil
import socket
import subprocess
import types
from pathlib import Path

import pytest

from gpubench.campaign import watching
from gpubench.errors import MissingToolError, SchedulerError
from gpubench.schedulers import batch, local, submitted
from gpubench.schedulers.lsf import Lsf
from gpubench.schedulers.pbs import Pbs
from gpubench.schedulers.slurm import Slurm
from gpubench.schedulers.state import current_user
from tests.cli.campaigns import write_suite
from tests.conftest import Run
from tests.lsf.cluster import LsfCluster
from tests.pbs.cluster import PbsCluster
from tests.schedulers.conftest import job_directory, remembered

NO_SUCH_JOB = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"


class Clients:
    """Commands of a scheduler that answer as their scripts say, first in PATH; calls are kept, with their variables."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, folder / "calls"
        folder.mkdir()
        self.calls.touch()

    def answer(self, **scripts: str) -> None:
        for name, script in scripts.items():
            heard = f'echo "{name} $*" >>{self.calls}\nenv | grep -E "^(SLURM|SBATCH|SQUEUE)_" >>{self.calls}-env\n'
            (self.folder / name).write_text(f"#!/bin/bash\n{heard}{script}\n")
            (self.folder / name).chmod(0o755)

    def said(self, command: str) -> list[str]:
        """The calls of a command, without its name."""
        lines = [line.partition(" ") for line in self.calls.read_text().splitlines()]
        return [words for name, _, words in lines if name == command]


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clients:
    made = Clients(tmp_path / "clients")
    monkeypatch.setenv("PATH", f"{made.folder}:{os.environ['PATH']}")
    made.answer(sbatch="echo 7", scontrol=NO_SUCH_JOB, sacct="true", squeue="true", scancel="true")
    return made


def job(place: Path, script: str = "", name: str = "j001-n1") -> Path:
    return job_directory(place, f"#!/bin/bash\n{script}", name=name)


def shown(directory: Path, state: str, *, user: str = f"me({os.getuid()})", where: Path | None = None) -> str:
    """A script that prints ``scontrol --oneliner show job`` of a job, cut down to the fields that are read."""
    head = f"JobId=7 JobName=x UserId={user} GroupId=me(1) JobState={state} Reason=None ExitCode=0:0 NodeList=n1"
    return f"echo '{head} Command={directory}/job.sh WorkDir={where or directory} StdErr={directory}/x'"


def shown_in_a_table(number: int, directory: Path) -> str:
    """A script that prints number, name and directory of the job that was submitted last from a directory."""
    return f"""echo "{number}|$(grep -oPm1 '"name": "\\K[^"]*' {directory}/submitted.json)|{directory}\""""


class Campaign:
    """A planned campaign of one job for a site with a queue."""

    def __init__(self, gpubench: Run, place: Path, scheduler: str, *settings: str) -> None:
        self._gpubench, self.directory = gpubench, place / "outputs" / "planned"
        suite = write_suite(place, reps=1, count=10)
        site = ("--site", "local-slurm", *(word for one in settings for word in ("--set", one)))
        if scheduler != "slurm":
            site = (*site, "--set", f"scheduler={scheduler}", "--set", "launcher=ssh")
        small = ("--variants", "a=1.22.0 b=1.22.0", "--protocol", "tcp")
        small += ("--workers", "1", "--nodes", "1", "--blocks", "1")
        words = ("plan", *site, "--suite", suite, *small, "--out", self.directory, "--images")
        done = gpubench(*words)
        assert done.returncode == 0, done.stderr
        (self.job,) = (self.directory / "jobs").iterdir()

    def __call__(self, *words: str, code: int = 0, **env: str) -> str:
        """What a command prints about the campaign, which must end with ``code``."""
        where = ("--campaign", self.directory) if words[0] in ("bench", "resume") else (self.directory,)
        name = "submit" if words[0] == "resume" else words[0]
        environment = {"PATH": os.environ["PATH"], **env}
        done = self._gpubench(name, *where, *words[1:], env=environment)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.mark.integration
def test_a_job_on_another_cluster_is_asked_for_and_ended_there_and_never_submitted_again(
    gpubench: Run, tmp_path: Path, clients: Clients
) -> None:
    """``70112233;wice``: LRZ (nextflow#807), KU Leuven (nf-core/configs#525), NOAA Gaea (rocoto#34)."""
    campaign = Campaign(gpubench, tmp_path, "slurm", 'batch.options=["--clusters=wice"]')
    where = "echo 'JobState=RUNNING Reason=None ExitCode=0:0 NodeList=r23g35 Command=/x'"
    gone = "echo 'JobState=CANCELLED Reason=None ExitCode=0:0 NodeList=r23g35 Command=/x'"
    clients.answer(
        sbatch="echo '70112233;wice'",
        scancel=f"touch {tmp_path}/killed",
        scontrol=f'case "$*" in *=wice*) [ -e {tmp_path}/killed ] && {gone} || {where};; *) {NO_SUCH_JOB};; esac',
    )
    assert "job j001-n1: 70112233 on cluster wice" in campaign("submit")
    assert "job j001-n1 (70112233): RUNNING on r23g35" in campaign("status", code=4)
    assert "job j001-n1 is still running" in campaign("resume", code=2)
    assert "is still running" in campaign("submit", code=2)
    assert "job j001-n1: cancelled" in campaign("cancel")
    assert clients.said("scancel") == ["--clusters=wice 70112233"]
    assert len(clients.said("sbatch")) == 1


CHOICES = [  # the script's directive, the shell's variables, the option that sbatch gets, the cluster that is asked
    ("", {"SLURM_CLUSTERS": "doduo", "SBATCH_CLUSTERS": "doduo"}, "--clusters=doduo", "doduo"),
    ("", {"SBATCH_CLUSTERS": "doduo"}, "--clusters=doduo", "doduo"),
    ("#SBATCH --clusters=wice\n", {"SLURM_CLUSTERS": "doduo"}, "", "wice"),
    ("#SBATCH --nodes=1 -M wice\n", {"SLURM_CLUSTERS": "doduo"}, "", "wice"),
    ('#SBATCH --clusters=a\n#SBATCH --cluster "wice"\n', {}, "", "wice"),
    (
        "#SBATCH --partition=gpu-MI300X --account=abc-MRI --constraint=x-M40\n",
        {"SLURM_CLUSTERS": "doduo"},
        "--clusters=doduo",
        "doduo",
    ),
    ("", {}, "", "own"),
]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_cluster_that_the_script_or_the_shell_chooses_is_asked_whatever_the_shell_chooses_later(
    choice: tuple[str, dict[str, str], str, str], tmp_path: Path, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``module swap cluster/doduo`` sets both variables (hpcugent/vsc_user_docs#561); sbatch was asked without them."""
    directive, variables, option, cluster = choice
    directory = job(tmp_path, directive)
    running_job = shown(directory, "RUNNING")
    there = "" if cluster == "own" else f"[[ $1 = --clusters={cluster} ]] || {{ {NO_SUCH_JOB}; }}\n"
    clients.answer(scontrol=f'[[ $* = "show config" ]] && {{ echo "ClusterName = own"; exit; }}\n{there}{running_job}')
    slurm = Slurm()
    assert slurm.submit(directory, {**os.environ, **variables, "SBATCH_PARTITION": "debug"}) == "7"
    (words,) = clients.said("sbatch")
    assert [word for word in words.split() if word.startswith("--clusters")] == ([option] if option else [])
    entry = remembered(directory)
    assert (entry.cluster, entry.job_id, entry.directory, entry.uid) == (cluster, "7", str(directory), os.getuid())
    for name in ("SLURM_CLUSTERS", "SQUEUE_PARTITION", "SBATCH_CLUSTERS"):
        monkeypatch.setenv(name, "elsewhere")
    assert slurm.state(directory).phase == "running"
    kept = Path(f"{clients.calls}-env")
    assert not re.search("elsewhere|debug", kept.read_text())


def test_a_login_node_of_another_cluster_asks_the_jobs_own(tmp_path: Path, clients: Clients) -> None:
    directory = job(tmp_path)
    clients.answer(scontrol=f'[[ $* = "show config" ]] && echo "ClusterName = first" || {{ {NO_SUCH_JOB}; }}')
    Slurm().submit(directory, os.environ)
    of_first = (
        f"[[ $1 = --clusters=first ]] && {shown(directory, 'RUNNING')} || {shown(directory, 'FAILED', user='you(7)')}"
    )
    clients.answer(scontrol=f'[[ $* = "show config" ]] && echo "ClusterName = second" || {{ {of_first}; }}')
    assert Slurm().state(directory).phase == "running"


@pytest.mark.integration
@pytest.mark.parametrize("state", ["COMPLETED", "RUNNING"])
@pytest.mark.parametrize("other", ["user", "directory"])
def test_a_strangers_job_of_the_same_number_is_neither_believed_nor_ended(
    state: str, other: str, gpubench: Run, tmp_path: Path, clients: Clients
) -> None:
    campaign = Campaign(gpubench, tmp_path, "slurm")
    whose = {"user": "alice(4711)"} if other == "user" else {"where": Path("/home/me/else")}
    clients.answer(scontrol=shown(campaign.job, state, **whose))
    campaign("submit")
    assert "job j001-n1 (7): unknown: Slurm's job 7 is another one of that number (user " in campaign("status", code=4)
    for words, code in ((("cancel",), 7), (("resume",), 2), (("bench",), 2), (("submit",), 2)):
        said = campaign(*words, code=code)
        assert "job j001-n1: whether job 7 has ended is unknown: Slurm's job 7 is another one" in said
        assert said.rstrip().endswith(
            f"if you know that job 7 has ended: gpubench cancel {campaign.directory} --ended 7"
        )
    assert clients.said("scancel") == []
    assert len(clients.said("sbatch")) == 1


RUNAWAY = "echo 'RUNNING|0:0|c401-001'"


@pytest.mark.integration
def test_a_runaway_job_is_unknown_until_its_script_or_its_user_says_that_it_has_ended(
    gpubench: Run, tmp_path: Path, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller forgot it, the database says RUNNING: aws-parallelcluster#3671; sacctmgr(1), RunawayJobs."""
    monkeypatch.setattr(watching, "ASK_S", 0.0)
    campaign = Campaign(gpubench, tmp_path, "slurm")
    clients.answer(sacct=RUNAWAY)
    campaign("submit")
    said = campaign("status", "--watch", code=4)  # it ends: nothing would change
    why = "'scontrol --all --oneliner show job 7' says 'slurm_load_jobs error: Invalid job id specified'"
    assert f"{why}, sacct says RUNNING, as of a runaway job, and the job left no exit code" in said
    insist = f"if you know that job 7 has ended: gpubench cancel {campaign.directory} --ended 7"
    assert said.rstrip().endswith(insist)
    assert insist in campaign("resume", code=2)
    assert "--ended 8: no such job was submitted" in campaign("cancel", "--ended", "8", code=2)
    assert len(clients.said("sbatch")) == 1
    assert f"job j001-n1: DECLARED ENDED: {current_user()} said so at 20" in campaign("cancel", "--ended", "7")
    entry = remembered(campaign.job)
    assert entry.declared_ended is not None
    assert entry.declared_ended["user"] == current_user()
    assert "lost: job j001-n1 ended (DECLARED ENDED: " in campaign("status", code=4)
    clients.answer(scontrol=shown(campaign.job, "RUNNING"))  # who says so may be wrong: Slurm knows it after all
    assert "is still running" in campaign("resume", code=2)
    assert "job j001-n1 (7) has not ended: RUNNING n1" in campaign("cancel", "--ended", "7", code=2)
    clients.answer(scontrol=NO_SUCH_JOB, sbatch="echo 8")
    assert "job j001-n1: 8" in campaign("resume")
    again = remembered(campaign.job)
    assert again.declared_ended is None
    assert again.earlier[0]["declared_ended"] == entry.declared_ended
    (campaign.job / "end-8").write_text("0\n")
    assert "2 lost of 2 runs" in campaign("status", code=4)


@pytest.mark.parametrize(
    ("word", "phase"),
    [
        ("REQUEUED", "pending"),
        ("REQUEUE_HOLD", "pending"),
        ("REQUEUE_FED", "pending"),
        ("REVOKED", "pending"),
        ("EXPEDITING", "pending"),
        ("SUSPENDED", "running"),
        ("STOPPED", "running"),
        ("NODE_FAIL", "ended"),
        ("LAUNCH_FAILED", "unknown"),
        ("NEW_IN_27_05", "unknown"),
        ("?", "unknown"),
    ],
)
def test_only_words_that_slurm_documents_as_an_end_end_a_job(
    word: str, phase: str, tmp_path: Path, clients: Clients
) -> None:
    directory = job(tmp_path)
    Slurm().submit(directory, os.environ)
    clients.answer(scontrol=shown(directory, word))
    state = Slurm().state(directory)
    assert (state.phase, state.word) == (phase, word)
    assert bool(state.reason) == (phase != "ended")  # a person is told what the word means


def test_a_job_whose_submit_was_not_heard_is_searched_and_an_earlier_one_is_not_taken_for_it(
    tmp_path: Path, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm, directory = Slurm(), job(tmp_path)
    monkeypatch.setattr(slurm, "SEARCH_S", 0.0)
    slurm.submit(directory, os.environ)  # 7
    (directory / "slurm-7.log").touch()
    (directory / "end-5").write_text("0\n")  # of a job before, whose submitted.json somebody has removed
    clients.answer(
        sbatch="echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1",
        squeue=f"echo '7|campaign-j001-n1-0a1b2c|{directory}'",
    )
    with pytest.raises(
        SchedulerError, match=r"sbatch gave no clear answer: .*; squeue shows no job from .*; gpubench st"
    ):
        slurm.submit(directory, os.environ)
    state = slurm.state(directory)
    assert (state.phase, state.job_id) == ("unknown", "")
    assert "gave no answer, and squeue shows no job from" in state.reason
    # It arrives late: in the queue, by its own log, in the database.
    for name, script in (
        ("squeue", f"echo '8|campaign-j001-n1-0a1b2c|{directory}'; {shown_in_a_table(9, directory)}"),
        ("sacct", f"[[ $* = *JobIDRaw* ]] && {shown_in_a_table(9, directory)}"),
    ):
        clients.answer(**{name: script, "scontrol": shown(directory, "RUNNING")})
        assert (slurm.state(directory).phase, slurm.state(directory).job_id) == ("running", "9")
        clients.answer(squeue="true", sacct="true", scontrol=NO_SUCH_JOB)
    (directory / "slurm-9.log").touch()
    (directory / "end-9").write_text("3\n")
    assert (slurm.state(directory).job_id, slurm.state(directory).exit_code) == ("9", 3)
    (directory / "slurm-9.log").unlink()
    (directory / "end-9").unlink()
    # Or never: nothing that was sent five minutes ago arrives any more.
    entry = remembered(directory)
    past = (dt.datetime.now(dt.UTC) - dt.timedelta(seconds=batch.SUBMIT_UNKNOWN_S + 1)).isoformat(timespec="seconds")
    for cluster, phase in (("own", "ended"), ("", "unknown")):  # if it is known where it was sent
        clients.answer(scontrol='[[ $* = "show config" ]] && echo "ClusterName = own"')
        submitted.keep(directory, dataclasses.replace(entry, at=past, cluster=cluster))
        assert slurm.state(directory).phase == phase


def test_a_machine_without_sacct_is_one_without_accounting(
    tmp_path: Path, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, ask = job(tmp_path), Slurm.ask
    Slurm().submit(directory, os.environ)

    def without_sacct(self: Slurm, *words: str) -> subprocess.CompletedProcess[str]:
        if words[0] == "sacct":
            raise MissingToolError("there is no sacct on this machine")
        return ask(self, *words)

    monkeypatch.setattr(Slurm, "ask", without_sacct)
    state = Slurm().state(directory)
    assert state.phase == "unknown"
    assert "says 'slurm_load_jobs error: Invalid job id specified', there is no sacct on this machine" in state.reason


@pytest.mark.integration
def test_a_scheduler_that_does_not_answer_any_more_does_not_block_a_campaign_for_ever(
    gpubench: Run, tmp_path: Path, clients: Clients
) -> None:
    campaign = Campaign(gpubench, tmp_path, "slurm")
    campaign("submit")
    clients.answer(
        scontrol="echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1"
    )
    for words in (("status",), ("resume",), ("cancel",)):
        said = campaign(*words, code=7)
        assert "is Slurm up? try again later; if you know that job 7 has ended: gpubench cancel " in said
    assert "DECLARED ENDED" in campaign("cancel", "--ended", "7")
    clients.answer(sbatch="echo 8")
    assert "job j001-n1: 8" in campaign("resume")


def moved(pbs_here: PbsCluster, directory: Path) -> Path:
    """A job that its server has moved to ``flashmgr2``, whose jobs lie in the folder that comes back.

    The answer of a real one, of QRIS' Awoonga: ``job_state = M``, ``queue = Short@flashmgr2`` (nextflow#1840).
    """
    pbs_here.plant(directory, job_state="M", queue="Short@flashmgr2", Job_Owner=f"{current_user()}@awonmgr2")
    there = pbs_here.state.parent / "flashmgr2"
    (there / "jobs" / "12").mkdir(parents=True)
    shutil.copy(pbs_here.state / "server.json", there)
    submitted.write(directory, "pbs", "x", "12.pbs-server", cluster="pbs-server")
    return there / "jobs" / "12"


@pytest.mark.parametrize(
    ("letter", "phase"), [("Q", "pending"), ("R", "running"), ("F", "ended"), ("M", "unknown"), (None, "unknown")]
)
def test_a_job_that_pbs_has_moved_is_asked_for_and_ended_on_its_new_server(
    letter: str | None, phase: str, pbs_here: PbsCluster, tmp_path: Path
) -> None:
    directory, pbs = job(tmp_path), Pbs()
    there = moved(pbs_here, directory)
    if letter:
        plain = json.loads((pbs_here.state / "jobs" / "12" / "job.json").read_text())
        plain["attributes"] |= {"job_state": letter, "queue": "Short", "Exit_status": 0}
        (there / "job.json").write_text(json.dumps(plain))
    assert pbs.state(directory).phase == phase
    if phase == "unknown":
        assert pbs.state(directory).reason.startswith("moved to Short@flashmgr2, ")
        with pytest.raises(SchedulerError, match=r"whether job 12\.pbs-server has ended is unknown: moved to Short"):
            pbs.cancel(directory)
        (directory / "end-12").write_text("0\n")  # there nobody remembers it, and here it stays M
        assert pbs.state(directory).phase == "ended"
    if letter == "Q":
        pbs.cancel(directory)
        assert json.loads((there / "job.json").read_text())["attributes"]["substate"] == 91
    pbs_here.forget()


def test_the_shells_default_server_of_pbs_may_change(
    pbs_here: PbsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, pbs = job(tmp_path, "#PBS -S /bin/bash\nsleep 60\n"), Pbs()
    pbs.submit(directory, os.environ)
    entry = remembered(directory)
    assert entry.cluster == "pbs-server"
    other = tmp_path / "other"
    (other / "jobs").mkdir(parents=True)
    shutil.copy(pbs_here.state / "server.json", other)
    for name in ("PBS_SERVER", "PBS_DEFAULT"):
        monkeypatch.setenv(name, "other")
    assert pbs.state(directory).alive
    submitted.keep(directory, dataclasses.replace(entry, job_id=""))  # nobody heard its id
    assert pbs.state(directory).job_id == "1.pbs-server"
    pbs.cancel(directory)
    assert pbs.state(directory).word == "CANCELLED"


def test_a_pbs_user_with_a_domain_and_a_queue_of_another_server(pbs_here: PbsCluster, tmp_path: Path) -> None:
    """``Job_Owner`` is USER@HOST (src/server/req_quejob.c of OpenPBS), and a queue may be QUEUE@SERVER (qsub(1B))."""
    directory, pbs = job(tmp_path, "#PBS -S /bin/bash\n#PBS -l select=1 -q Short@flashmgr2\n"), Pbs()
    assert pbs.cluster_of(directory, os.environ) == "flashmgr2"
    pbs_here.plant(directory, job_state="R", Job_Owner="ann@ad.example.org@login1")
    entry = submitted.write(directory, "pbs", "x", "12.pbs-server", cluster="pbs-server")
    submitted.keep(directory, dataclasses.replace(entry, user="ann@ad.example.org"))
    assert pbs.state(directory).phase == "running"
    pbs_here.forget()


def test_lsf_may_write_the_home_directory_in_its_own_way(
    lsf_here: LsfCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, lsf, home = job(tmp_path / "real"), Lsf(), tmp_path / "home"
    home.symlink_to(tmp_path / "real")
    lsf_here.plant(directory, "RUN", cwd="$HOME/campaign/jobs/j001-n1")
    submitted.write(directory, "lsf", "x", "12", cluster="cluster1")
    assert lsf.state(directory).reason.startswith("LSF's job 12 on cluster cluster1 is another one")
    monkeypatch.setattr("pwd.getpwuid", lambda _uid: types.SimpleNamespace(pw_dir=str(home)))
    assert lsf.state(directory).phase == "running"
    lsf_here.forget()


def test_another_lsf_cluster_is_not_asked_for_the_job(
    lsf_here: LsfCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, lsf = job(tmp_path, "#BSUB -nnodes 1\ntrue\n"), Lsf()
    lsf.submit(directory, os.environ)
    shape = lsf_here.state / "cluster.json"
    own = shape.read_text()
    shape.write_text(json.dumps({**json.loads(own), "name": "second"}))
    state = lsf.state(directory)
    assert state.phase == "unknown"
    assert state.reason.startswith("the job is on cluster cluster1, and LSF on this machine is cluster second")
    shape.write_text(own)
    assert lsf.state(directory).phase != "unknown"
    monkeypatch.setenv("LSB_BJOBS_FORMAT", "jobid")
    folder = lsf_here.state / "jobs" / "101" / "job.json"
    folder.write_text(json.dumps({**json.loads(folder.read_text()), "user": "alice"}))
    assert lsf.state(directory).reason.startswith(
        "LSF's job 101 on cluster cluster1 is another one of that number (user a"
    )


def test_what_lsf_says_of_a_waiting_job_is_told_as_it_is(lsf_here: LsfCluster, tmp_path: Path) -> None:
    directory, lsf = job(tmp_path), Lsf()
    lsf_here.plant(directory, "PEND", hosts=[], pend="{a} | {b}")
    submitted.write(directory, "lsf", "x", "12", cluster="cluster1")
    assert (lsf.state(directory).phase, lsf.state(directory).reason) == ("pending", "{a} | {b}")
    lsf_here.forget()


@pytest.mark.integration
def test_a_local_job_is_known_on_its_own_machine_only_and_until_its_next_start(
    gpubench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = job(tmp_path, "exit 0\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with local.acquire_machine(directory, lambda _holder: None) as lock:
        running_job = local.submit(directory, os.environ, lock)
    path = directory / local.STATE_FILE
    known = json.loads(path.read_text())
    assert running_job.close() == 0
    assert known["code"] is None
    machine = known["machine"] | {"id": "1"}
    monkeypatch.setattr(local, "_machine", lambda: machine)
    other = "it was started on far, and this is "
    for change, phase, reason in (
        ({"boot": "another"}, "ended", "this machine has been started anew since"),
        ({"boot": "another", "id": "", "host": "far"}, "unknown", f"{other}{socket.gethostname()}: ask there"),
        ({"boot": "another", "id": "2", "host": "far"}, "unknown", f"{other}{socket.gethostname()}: ask there"),
        ({"processes": "another", "host": "far"}, "unknown", f"{other}another container of it: ask there"),
        ({"host": "far"}, "ended", ""),  # this machine was given another name
    ):
        path.write_text(json.dumps({**known, "machine": {**machine, **change}}))
        assert (local.state(directory).phase, local.state(directory).reason) == (phase, reason)
    path.write_text(json.dumps({**known, "machine": {**machine, "boot": "another", "host": "far"}}))
    with pytest.raises(SchedulerError, match="has ended is unknown: it was started on far"):
        local.cancel(directory)
    local.declare_ended(directory)
    assert local.state(directory).end.startswith(f"DECLARED ENDED: {current_user()} said so at ")
