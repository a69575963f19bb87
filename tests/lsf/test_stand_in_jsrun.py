"""The stand-ins for jsrun and bsub: their grammar, their refusals, and how a job ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsf.cluster import LsfCluster

pytestmark = pytest.mark.testbed
CORES = len(os.sched_getaffinity(0))


@pytest.fixture
def lsf(tmp_path: Path) -> Iterator[LsfCluster]:
    made = LsfCluster(tmp_path, cores=CORES, gpus=6, minute=0.1, interval=0.3)
    yield made
    made.close()


def test_two_steps_share_no_core_and_the_second_waits_for_the_first(lsf: LsfCluster, tmp_path: Path) -> None:
    first = f"jsrun -n 2 -r 1 -c {CORES} -b rs bash -c 'touch begun; sleep 1; echo one'"
    second = "jsrun -n 1 -c 1 echo two"
    script = f"{first} & until [ -e begun ]; do sleep 0.1; done; {second}; wait"
    assert lsf.ended(tmp_path, script)[2].split() == ["one", "one", "two"]


REFUSED = {
    "seven sets with a GPU each on six": ("-n 7 -r 7 -c 1 -g 1", "It is not possible to satisfy the resource request"),
    "more sets than nodes": (f"-n 3 -r 1 -c {CORES}", "It is not possible to satisfy the resource request"),
    "a word of its own": ("-n 1 --nodes 2", "unrecognised option '--nodes'"),
    "twice": ("-n 1 --nrs=2", "option '--nrs' cannot be specified more than once"),
    "no number": ("-n two", "the argument ('two') for option '--nrs' is invalid"),
    "binding": ("-n 1 -b cores", "invalid binding 'cores'"),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED)
def test_jsrun_refuses_what_the_real_one_does_not_know_or_cannot_give(
    words: str, message: str, lsf: LsfCluster, tmp_path: Path
) -> None:
    stat, code, printed = lsf.ended(tmp_path, f"jsrun {words} true")
    assert (stat, message in printed) == ("EXIT", True), printed
    assert code


SUBMITS = {
    "option": ("--nodes=2", "--nodes=2: Illegal option."),
    "queue": ("-nnodes 1 -q nope", "nope: No such queue."),
    "flag": ("-nnodes 1 -alloc_flags smt8", "Unknown alloc_flags: smt8."),
    "nodes": ("-nnodes 5", "Too many nodes requested."),
    "none": ("-W 5", "Bad argument for option -nnodes."),
    "limit": ("-nnodes 1 -W 2h", "2h: Illegal run limit."),
    "warning": ("-nnodes 1 -wa TERM", "-wa and -wt must be used together."),
    "unit": ("-nnodes 1 -M 5GB", "5GB: Illegal memory limit."),
    "dependency": ("-nnodes 1 -w ended(7)", "Dependency condition invalid"),
}


@pytest.mark.parametrize(("words", "message"), SUBMITS.values(), ids=SUBMITS)
def test_bsub_refuses_what_the_real_one_does_not_know(
    words: str, message: str, lsf: LsfCluster, tmp_path: Path
) -> None:
    done = lsf.run("bsub", text=f"#!/bin/bash\n#BSUB {words.replace('(', chr(92) + '(').replace(')', chr(92) + ')')}\n")
    assert (done.returncode, message in done.stderr) == (255, True), done.stderr
    assert not list((lsf.state / "jobs").iterdir())


def test_nothing_of_a_job_lives_on_when_its_script_has_ended(lsf: LsfCluster, tmp_path: Path) -> None:
    script = "jsrun -n 2 -r 1 bash -c 'echo $$ >pid-$PMIX_RANK; setsid sleep 300 & exec sleep 300' &\nsleep 1; exit 3"
    assert lsf.ended(tmp_path, script)[:2] == ("EXIT", 3)
    for rank in range(2):
        assert not Path(f"/proc/{(tmp_path / f'pid-{rank}').read_text().strip()}").exists()


def test_a_job_over_its_run_limit_hears_its_warning_first_and_sigusr2_then(lsf: LsfCluster, tmp_path: Path) -> None:
    traps = "trap 'echo term' TERM; trap 'echo usr2; exit 5' USR2"
    script = f"#BSUB -W 10 -wt 5 -wa TERM\n{traps}\nwhile :; do sleep 0.05; done"
    stat, code, printed = lsf.ended(tmp_path, script)
    assert (stat, code, [line for line in printed.split() if line in ("term", "usr2")]) == ("EXIT", 5, ["term", "usr2"])
