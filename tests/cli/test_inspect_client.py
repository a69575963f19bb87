"""The client of ``gpubench cluster verify`` and ``affinity``."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.clusters import inspect_client
from gpubench.errors import InterruptedByUserError, MissingToolError

ADDRESS = "tcp://127.0.0.1:1"


def program(directory: Path, text: str) -> Path:
    path = directory / "python"
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_client_that_hears_no_signal_is_killed_when_its_command_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = program(tmp_path, 'trap "" TERM\nkill -INT "$PPID"\nsleep 600')
    monkeypatch.setattr(inspect_client, "STOP_S", 0.5)
    with pytest.raises(InterruptedByUserError, match=r"^interrupted by SIGINT$"):
        inspect_client.ask(ADDRESS, deaf, {})


def test_the_last_line_of_a_client_without_an_answer_is_said(tmp_path: Path) -> None:
    lost = program(tmp_path, "echo first; echo gpubench look: this Python has no distributed")
    with pytest.raises(MissingToolError, match="python couldn't check the cluster: this Python has no distributed"):
        inspect_client.ask(ADDRESS, lost, {})
