"""Client commands that aren't there, or that nobody may start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpubench.errors import MissingToolError, SchedulerError
from gpubench.schedulers.batch import call
from gpubench.schedulers.slurm import Slurm


@pytest.mark.parametrize("mode", [None, 0o644])
def test_a_command_that_cannot_be_started_here_is_missing(tmp_path: Path, mode: int | None) -> None:
    if mode is not None:
        (tmp_path / "sbatch").write_text("#!/bin/sh\n")
        (tmp_path / "sbatch").chmod(mode)
    with pytest.raises(MissingToolError, match="there is no sbatch on this machine; run it on a login node"):
        call(["sbatch"], env={"PATH": str(tmp_path)})


def test_a_submit_command_that_names_no_job_may_have_been_heard() -> None:
    with pytest.raises(SchedulerError, match=r"sbatch got no answer: .*; gpubench status shows"):
        Slurm().submitted_id(subprocess.CompletedProcess(["sbatch"], 0, stdout="\n", stderr=""))
