"""From `main` to the effect: whoever follows a command reads few functions."""

import os
import subprocess
import traceback
from pathlib import Path
from typing import Any

import pytest

from gpubench import resources
from tests.cli.campaigns import write_suite
from tests.conftest import Run

MOST = 8


@pytest.fixture
def chains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Functions of gpubench on the call stack, outermost first, each time that sbatch is started."""
    clients = tmp_path / "clients"
    clients.mkdir()
    for name, script in {"sbatch": "echo 7", "scontrol": "exit 1", "squeue": "true"}.items():
        (clients / name).write_text(f"#!/bin/bash\n{script}\n")
        (clients / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(clients), prepend=os.pathsep)
    chains: list[list[str]] = []
    start = subprocess.run

    def recorded(words: list[str], **options: Any) -> Any:
        if words[0] == "sbatch":
            frames = [frame for frame in traceback.extract_stack() if frame.filename.startswith(str(resources.PACKAGE))]
            chains.append([f"{Path(frame.filename).relative_to(resources.PACKAGE)}:{frame.name}" for frame in frames])
        return start(words, **options)

    monkeypatch.setattr(subprocess, "run", recorded)
    return chains


@pytest.mark.integration
def test_from_the_command_line_to_sbatch_are_eight_functions_at_most(
    gpubench: Run, tmp_path: Path, chains: list[list[str]]
) -> None:
    suite = ("--suite", write_suite(tmp_path), "--variants", "a=1.22.0 b=1.22.0", "--nodes", "1", "--blocks", "1")
    gpubench("submit", "--site", "local-slurm", *suite, code=0)
    (chain,) = chains
    assert len(chain) <= MOST, "\n".join(chain)
