"""From `main` to the effect: whoever follows a command reads few functions, and each step is taken once."""

from __future__ import annotations

import os
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpubench import resources
from gpubench.campaign import first_pass, lifecycle, planning
from gpubench.errors import InterruptedByUserError
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


@pytest.fixture
def submit(gpubench: Run, tmp_path: Path) -> Callable[[], None]:
    """Plan the smallest campaign of two variants, and submit it."""
    suite = ("--suite", write_suite(tmp_path), "--variants", "a=1.22.0 b=1.22.0", "--nodes", "1", "--blocks", "1")

    def run() -> None:
        done = gpubench("submit", "--site", "local-slurm", *suite)
        assert done.returncode == 0, done.stderr

    return run


@pytest.mark.integration
def test_from_the_command_line_to_sbatch_are_eight_functions_at_most(
    submit: Callable[[], None], chains: list[list[str]]
) -> None:
    submit()
    (chain,) = chains
    assert len(chain) <= MOST, "\n".join(chain)


def counted(monkeypatch: pytest.MonkeyPatch, *functions: str) -> dict[str, int]:
    """How often each of these functions is called in planning."""
    counts = dict.fromkeys(functions, 0)

    def counting(function: str) -> Callable[..., Any]:
        does = getattr(planning, function)

        def call(*arguments: Any, **options: Any) -> Any:
            counts[function] += 1
            return does(*arguments, **options)

        return call

    for function in functions:
        monkeypatch.setattr(planning, function, counting(function))
    return counts


@pytest.mark.integration
@pytest.mark.usefixtures("chains")
def test_a_new_campaign_is_planned_once_and_its_scripts_are_written_once(
    submit: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = counted(monkeypatch, "make_plan", "obtain_images", "rendered")
    submit()
    assert counts == {"make_plan": 1, "obtain_images": 1, "rendered": 1}


@pytest.mark.integration
def test_a_first_pass_needs_a_plan_of_its_own_and_no_images_again(
    gpubench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_arguments: Any) -> None:
        raise InterruptedByUserError("enough")

    counts = counted(monkeypatch, "make_plan", "obtain_images")
    monkeypatch.setattr(first_pass, "run_jobs", lambda *_arguments, **_options: None)
    monkeypatch.setattr(lifecycle, "run_blocks", stop)
    suite = write_suite(tmp_path)
    suite.write_text(f"first_pass = true\n{suite.read_text()}")
    done = gpubench("bench", "--suite", suite, "--variants", "a=1.22.0 b=1.22.0", "--protocol", "tcp", "--workers", "1")
    assert done.returncode == 130, done.stderr
    assert "repetitions are those of suite tiny: the first pass ended" in done.stdout
    assert counts == {"make_plan": 2, "obtain_images": 1}
