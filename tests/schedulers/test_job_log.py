"""The last words of a job's log, which say why it failed."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from gpubench import resources
from gpubench.render.jinja import environment
from gpubench.schedulers.state import JobState, last_line, with_log
from tests.answers import FOLDER

PYXIS = """hello
slurmstepd: error: pyxis: container start failed with error code: 1
slurmstepd: error: pyxis: printing enroot log file:
slurmstepd: error: pyxis:     enroot-mount: failed to mount: /data at /data: No such file or directory
slurmstepd: error: pyxis: couldn't start container
slurmstepd: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1
slurmstepd: error: Failed to invoke spank plugin stack
srun: error: n1: task 0: Exited with exit code 1
"""
OF_PYXIS = tomllib.loads((FOLDER / "pyxis-logs.toml").read_text(encoding="utf-8"))["case"]
REPORT = """
------------------------------------------------------------
Sender: LSF System <lsfadmin@batch2>
Subject: Job 7: <campaign-j001-n2> in cluster <summit> Exited

Resource usage summary:

    CPU time :                                   0.10 sec.

The output (if any) is above this job summary.

"""


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (PYXIS, "enroot-mount: failed to mount: /data at /data: No such file or directory"),
        (PYXIS + REPORT, "enroot-mount: failed to mount: /data at /data: No such file or directory"),
        ("gpubench: n1: the file isn't the one\n", "n1: the file isn't the one"),
        ("[ERROR] Failed to remove a container\ngpubench: n3: its sha256 is f1\n", "n3: its sha256 is f1"),
        ("\x1b[31mred\x1b[0m \x07\n\n", "red"),
        ("x" * 500, "x" * 300),
        ("srun: error: n1: task 0: Exited with exit code 1\n", ""),
        ("", ""),
    ],
)
def test_the_line_that_says_most_is_found(tmp_path: Path, log: str, words: str) -> None:
    (tmp_path / "job.log").write_text(log)
    assert last_line(tmp_path / "job.log") == words


@pytest.mark.parametrize("case", OF_PYXIS, ids=lambda case: str(case["name"]))
def test_the_first_line_that_names_a_cause_wins_over_what_follows_from_it(tmp_path: Path, case: dict[str, str]) -> None:
    (tmp_path / "job.log").write_text(case["log"])
    assert last_line(tmp_path / "job.log") == case["cause"]


@pytest.mark.parametrize("case", OF_PYXIS, ids=lambda case: str(case["name"]))
def test_the_job_scripts_shell_finds_the_same(case: dict[str, str]) -> None:
    text = environment(resources.texts("templates")).get_template("runtimes/squashfs.sh.j2").render()
    done = subprocess.run(
        ["bash", "-uc", f"{text}\nlast_words"], input=case["log"], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == (case["cause"], "")


def test_a_reason_of_the_schedulers_own_stays_and_a_job_that_is_well_has_none(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("why\n")
    for state, reason in (
        (JobState("ended", "FAILED", "NonZeroExitCode", 1), "its log ends: why"),
        (JobState("ended", "FAILED", "", 1), "its log ends: why"),
        (JobState("ended", "TIMEOUT", "TimeLimit", 1), "TimeLimit"),
        (JobState("ended", "COMPLETED", "", 0), ""),
        (JobState("running", "RUNNING"), ""),
    ):
        assert with_log(state, tmp_path / "job.log").reason == reason
    assert with_log(JobState("ended", "FAILED", "", 1), tmp_path / "none").reason == ""
