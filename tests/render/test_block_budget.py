"""The script of a job begins no block that would end beyond the budget that its front end names."""

import subprocess

import pytest

from gpubench.schedulers.batch import BLOCKS, BUDGET, inherited
from gpubench.store.accounting import OVER_BUDGET
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden"
SCRIPTS = ["local-fork-venv/jobs/j001-n1", "slurm-srun-venv/jobs/j002-n4", "pbs-ssh-apptainer/jobs/j001-n2"]


def begun(environ: dict[str, str], *blocks: tuple[int, int], planned: int = 20, script: str = SCRIPTS[0]) -> list[str]:
    """What becomes of blocks that take so many seconds each: ``run``, ``left out``, or why one isn't begun."""
    text = (GOLDEN / script / "job.sh").read_text()
    part = text[text.index("# GPUBENCH_BUDGET") : text.index("run() {")]
    lines = [
        "set -u",
        "clock=100 selected='' skip='' unready=''",
        "now() { echo $clock; }",
        "GPUBENCH_END=100000",
        part,
    ]
    for number, seconds in blocks:
        lines += [
            f"begin_block {number} {planned * 3 // 2}",
            'if [ -z "$selected" ]; then echo left out; elif [ -n "$skip" ]; then echo "$skip"; '
            f"else echo run; clock=$((clock + {seconds})); fi",
        ]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], env=environ, capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("budget_s", "blocks", "expected"),
    [
        (60, [(1, 20), (2, 20), (3, 20), (4, 20)], ["run"] * 3 + [f"{OVER_BUDGET}: 0 s"]),
        (60, [(1, 10), (2, 10), (3, 10), (4, 10), (5, 10), (6, 10)], ["run"] * 6),
        (100, [(1, 45), (2, 45), (3, 5)], ["run", "run", f"{OVER_BUDGET}: 10 s"]),
        (100, [(1, 10), (2, 60), (3, 5), (4, 5)], ["run", "run", f"{OVER_BUDGET}: 30 s", f"{OVER_BUDGET}: 30 s"]),
        (19, [(1, 5)], [f"{OVER_BUDGET}: 19 s"]),
        (None, [(1, 1000), (2, 1000)], ["run", "run"]),
    ],
)
def test_a_block_is_begun_only_if_one_as_long_as_the_longest_so_far_ends_in_time(
    budget_s: float | None, blocks: list[tuple[int, int]], expected: list[str]
) -> None:
    assert begun(inherited({}, None, budget_s), *blocks) == expected


@pytest.mark.parametrize("script", SCRIPTS)
def test_so_does_the_script_of_a_queue(script: str) -> None:
    environ = inherited({}, None, 60)
    assert begun(environ, (1, 25), (2, 25), (3, 5), script=script) == ["run", "run", f"{OVER_BUDGET}: 10 s"]
    assert begun({}, (1, 1000), (2, 1000), script=script) == ["run", "run"]


def test_blocks_that_are_not_asked_for_need_no_time_and_tell_none() -> None:
    environ = inherited({}, [2, 4], 50)
    assert environ == {BLOCKS: "2 4", BUDGET: "50"}
    assert begun(environ, (1, 0), (2, 20), (3, 0), (4, 20)) == ["left out", "run", "left out", "run"]
