"""The LSF adapter over stand-ins: what only a queue can get wrong, and every word of LSF."""

import os
from pathlib import Path

import pytest

from gpubench.errors import SchedulerError
from gpubench.schedulers import submitted
from gpubench.schedulers.lsf import Lsf
from tests.lsf.cluster import LsfCluster
from tests.schedulers.conftest import job_directory
from tests.slurm.hosts import until

lsf = Lsf()
HEAD = "#!/usr/bin/env bash\n#BSUB -nnodes 1 -o lsf-%J.log\n"


def job(place: Path, script: str, *, name: str = "j001-n1") -> Path:
    return job_directory(place, HEAD + script, name=name, campaign="a campaign")


def ended(directory: Path) -> None:
    until(lambda: not lsf.state(directory).alive, "the end of the job", pause=0.1)


def test_a_script_that_says_so_is_an_argument_of_bsub(
    lsf_here: LsfCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Summit's bsub takes none on standard input (olcf-user-docs, summit_user_guide.rst; dask-jobqueue issue 328)."""
    directory = job(tmp_path, "# By hand: bsub job.sh, in the directory where it stands\ntrue\n")
    lsf.submit(directory, os.environ)
    ended(directory)
    assert lsf.state(directory).word == "COMPLETED"
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    refuses = '[ "$(cat)" ] && { echo "Usage: bsub [options] script" >&2; exit 255; }'
    (bin_ / "bsub").write_text(f"#!/bin/bash\n{refuses}\necho 'Job <26238> is submitted to default queue <batch>.'\n")
    (bin_ / "bsub").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    assert lsf.submit(directory, os.environ) == "26238"
    with pytest.raises(SchedulerError, match="bsub refuses job"):
        lsf.submit(job(tmp_path, "true\n", name="j002-n1"), os.environ)


def test_the_hosts_of_a_running_job_are_its_compute_nodes(lsf_here: LsfCluster, tmp_path: Path) -> None:
    directory = job(tmp_path, "#BSUB -nnodes 3\ntouch ready; sleep 60\n")
    lsf.submit(directory, os.environ)
    until((directory / "ready").exists, "the script")
    assert (lsf.state(directory).phase, lsf.state(directory).hosts) == ("running", "n1,n2,n3")
    lsf.cancel(directory)
    assert lsf.state(directory).end.startswith("FAILED, exit code")
    assert "TERM_OWNER: job killed by owner" in lsf.state(directory).end


def test_a_job_that_lsf_has_lost_outlives_bkill_and_the_error_says_how_to_make_lsf_forget_it(
    lsf_here: LsfCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = job(tmp_path, "true\n")
    lsf_here.plant(directory, "ZOMBI")
    submitted.write(directory, "lsf", "x", "12")
    monkeypatch.setattr(lsf, "CANCEL_S", 0.1)
    with pytest.raises(SchedulerError, match=r"job 12 hasn't ended 0.1 s after bkill: ZOMBI") as caught:
        lsf.cancel(directory)
    assert "bkill -r 12" in (caught.value.then or "")
    assert "nothing of it runs on n1" in (caught.value.then or "")
    lsf_here.forget()


WORDS = {
    "PEND": ("pending", "PEND", None),
    "PSUSP": ("pending", "PSUSP", None),
    "PROV": ("pending", "PROV", None),
    "WAIT": ("pending", "WAIT", None),
    "RUN": ("running", "RUN", None),
    "USUSP": ("running", "USUSP", None),
    "SSUSP": ("running", "SSUSP", None),
    "DONE": ("ended", "COMPLETED", 0),
    "EXIT": ("ended", "FAILED", 137),
    "UNKWN": ("running", "UNKWN", None),
    "ZOMBI": ("running", "ZOMBI", None),
    "NEW_STATE": ("unknown", "NEW_STATE", None),
}


@pytest.mark.parametrize(("word", "expected"), WORDS.items())
def test_every_word_of_lsf_has_its_phase_and_none_but_done_is_an_end_without_complaint(
    word: str, expected: tuple[str, str, int | None], lsf_here: LsfCluster, tmp_path: Path
) -> None:
    """The words are those of bjobs(1), and one that isn't there; most can't be brought about here."""
    directory = job(tmp_path, "true\n")
    lsf_here.plant(directory, word, exit=137)
    submitted.write(directory, "lsf", "x", "12")
    state = lsf.state(directory)
    assert (state.phase, state.word, state.exit_code) == expected
    assert bool(state.end) == (word == "EXIT")
    assert ("bkill -r 12" in state.reason) == (word in ("UNKWN", "ZOMBI"))
    lsf_here.forget()
