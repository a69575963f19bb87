"""The client of ``gpubench cluster verify`` and ``affinity``."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.cli.clusters import inspect_client
from gpubench.errors import InterruptedByUserError
from gpubench.node.spec.inspect_record import INSPECT_SPEC, InspectSpec


def test_a_client_that_has_to_be_killed_may_have_left_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = tmp_path / "python"
    deaf.write_text('#!/bin/bash\ntrap "" TERM\nkill -INT "$PPID"\nsleep 600\n')
    deaf.chmod(0o755)
    monkeypatch.setattr(inspect_client, "STOP_S", 0.5)
    question = InspectSpec(INSPECT_SPEC, "tcp://127.0.0.1:1", 1.0, places=False, answer_s=1.0)
    with pytest.raises(InterruptedByUserError) as caught:
        inspect_client.SubprocessClient(tmp_path, deaf, {}).ask(question, 60.0)
    assert str(caught.value) == (
        "interrupted by SIGINT; the client did not end within 0.5 s and was killed: the workers may still have its "
        "code and data; restart the workers before you measure again"
    )
