"""The PBS adapter over stand-ins: what only a queue can get wrong, every state of PBS, both forms of its JSON."""

import os
from pathlib import Path

import pytest

from gpubench.errors import SchedulerError
from gpubench.schedulers import submitted
from gpubench.schedulers.pbs import Pbs
from tests.pbs.cluster import PbsCluster
from tests.schedulers.conftest import job_directory
from tests.schedulers.test_conformance import ODD, QUEUES, find_a_lost_job
from tests.slurm.hosts import until

pbs = Pbs()
HEAD = "#!/usr/bin/env bash\n#PBS -S /bin/bash\n#PBS -o pbs.out\n"
MOVE = 'cd "$PBS_O_WORKDIR"; exec >>"pbs-${PBS_JOBID%%.*}.log" 2>&1\n'


def job(place: Path, script: str, *, name: str = "j001-n1", campaign: str = "a campaign", options: str = "") -> Path:
    return job_directory(place, HEAD + options + MOVE + script, name=name, campaign=campaign)


def ended(directory: Path) -> None:
    until(lambda: not pbs.state(directory).alive, "the end of the job", pause=0.1)


@pytest.mark.parametrize("history", [True, False], ids=["history", "no-history"])
def test_a_job_behind_others_that_have_ended_is_submitted_without_them(
    pbs_here: PbsCluster, tmp_path: Path, history: bool
) -> None:
    """PBS would refuse it, or hold it for ever."""
    pbs_here.set(history=history)
    numbers = []
    for number, code in enumerate((9, 0), 1):
        before = job(tmp_path, f"echo {code} >end-{number}; exit {code}\n", name=f"j00{number}-n1")
        numbers.append(pbs.submit(before, os.environ))
        ended(before)
    third = job(tmp_path, "echo 0 >end-3\n", name="j003-n1")
    pbs.submit(third, os.environ, numbers)
    ended(third)
    assert pbs.state(third).exit_code == 0


def test_the_hosts_of_a_running_job_and_its_end_by_qdel(pbs_here: PbsCluster, tmp_path: Path) -> None:
    directory = job(
        tmp_path, "trap 'exit 130' TERM; touch ready; while true; do sleep 0.1; done\n", options="#PBS -l select=3\n"
    )
    pbs.submit(directory, os.environ)
    until((directory / "ready").exists, "the script")
    now = pbs.state(directory)
    assert (now.phase, now.word, now.reason, now.hosts) == ("running", "R", "", "n1,n2,n3")
    pbs.cancel(directory)
    ended = pbs.state(directory)
    # qdel signals one process after the other: where the script ends before its login shell gets its signal, the shell
    # ends with the script's code.
    assert (ended.word, ended.exit_code in (130, 143)) == ("CANCELLED", True)
    assert ended.end == f"CANCELLED, exit code {ended.exit_code}: it was ended by qdel"


def test_a_job_that_was_ended_before_it_ran_is_cancelled_without_an_exit_code(
    pbs_here: PbsCluster, tmp_path: Path
) -> None:
    first, second = job(tmp_path, "sleep 60\n"), job(tmp_path, "true\n", name="j002-n1")
    before = pbs.submit(first, os.environ)
    pbs.submit(second, os.environ, [before])
    pbs.cancel(second)
    state = pbs.state(second)
    assert (state.phase, state.word, state.exit_code) == ("ended", "CANCELLED", None)


def test_the_end_of_the_walltime_is_told_as_such(pbs_here: PbsCluster, tmp_path: Path) -> None:
    directory = job(tmp_path, "sleep 60\n", options="#PBS -l walltime=0:00:01\n")
    pbs.submit(directory, os.environ)
    ended(directory)
    assert pbs.state(directory).end == "FAILED: its walltime was over"
    assert "walltime" in (directory / "pbs.out").read_text()


def test_a_campaign_with_a_long_or_odd_name_can_be_submitted(pbs_here: PbsCluster, tmp_path: Path) -> None:
    for at, campaign in enumerate(("a@b", "c" * 250), 1):
        directory = job(tmp_path, "exit 0\n", campaign=campaign)
        pbs.submit(directory, os.environ)
        ended(directory)
        assert pbs_here.job(str(at))["Exit_status"] == 0


def test_a_job_behind_others_is_not_submitted_while_the_server_is_down(pbs_here: PbsCluster, tmp_path: Path) -> None:
    (pbs_here.state / "down").touch()
    directory = job(tmp_path, "true\n")
    with pytest.raises(SchedulerError, match=r"qstat 1.pbs-server failed"):
        pbs.submit(directory, os.environ, ["1.pbs-server"])
    assert pbs.state(directory).phase == "unsubmitted"
    (pbs_here.state / "down").unlink()


def test_a_job_whose_submit_gave_no_answer_is_found_in_the_json_of_old_servers_too(
    pbs_here: PbsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pbs_here.set(unescaped=True)
    for campaign in ("plain", ODD):
        (tmp_path / campaign[:1]).mkdir()
        find_a_lost_job(QUEUES["pbs"], tmp_path / campaign[:1], monkeypatch, campaign)


def test_a_job_gets_neither_variables_of_a_job_around_it_nor_shell_functions(
    pbs_here: PbsCluster, tmp_path: Path
) -> None:
    directory = job(tmp_path, 'echo "${PBS_ARRAY_INDEX-none} $(type -t module || echo none)"\n')
    pbs.submit(directory, {**os.environ, "PBS_ARRAY_INDEX": "7", "BASH_FUNC_module%%": "() { echo; }"})
    ended(directory)
    assert (directory / "pbs-1.log").read_text() == "none none\n"


STATES = {
    "Q": ("pending", "Q", None),
    "H": ("pending", "H", None),
    "W": ("pending", "W", None),
    "T": ("pending", "T", None),
    "R": ("running", "R", None),
    "E": ("running", "E", None),
    "S": ("running", "S", None),
    "U": ("running", "U", None),
    "B": ("running", "B", None),
    "?": ("unknown", "?", None),
    "F": ("ended", "FAILED", 137),
    "X": ("ended", "FAILED", 137),
}


@pytest.mark.parametrize(("letter", "expected"), STATES.items())
def test_every_state_of_pbs_has_its_phase(
    letter: str, expected: tuple[str, str, int | None], pbs_here: PbsCluster, tmp_path: Path
) -> None:
    """The letters are those of qstat(1B); most can't be brought about here."""
    pbs_here.set(unescaped=letter in "QRF")  # the JSON of old servers, whose escapes are wrong
    directory = job(tmp_path, "true\n")
    finished = {"Exit_status": 265, "substate": 93} if letter in "FX" else {}
    pbs_here.plant(directory, job_state=letter, comment='Job run, "and" more', **finished)
    submitted.write(directory, "pbs", "x", "12.pbs-server")
    state = pbs.state(directory)
    assert (state.phase, state.word, state.exit_code) == expected
    assert state.hosts == "n1,n2"
    assert ('Job run, "and" more' in state.reason) == (expected[0] in ("pending", "unknown"))
    pbs_here.forget()


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (0, 0, ""),
        (1, 1, ""),
        (130, 130, "it was asked to end: by qdel, or because its time was nearly over"),
        (271, 143, ""),
        (-1, None, "PBS couldn't run it (Exit_status -1): no such host"),
        (-25, None, "it used more CPUs than it asked for"),
        (-27, None, "it used more memory than it asked for"),
        (-29, None, "its walltime was over"),
    ],
)
def test_exit_statuses_of_pbs(status: int, code: int | None, reason: str, pbs_here: PbsCluster, tmp_path: Path) -> None:
    directory = job(tmp_path, "true\n")
    substate = 92 if not status else 93
    pbs_here.plant(directory, job_state="F", substate=substate, Exit_status=status, comment="no such host")
    submitted.write(directory, "pbs", "x", "12.pbs-server")
    state = pbs.state(directory)
    assert (state.word, state.exit_code, state.reason) == ("FAILED" if status else "COMPLETED", code, reason)
    pbs_here.forget()
