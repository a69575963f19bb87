"""Client commands that aren't there, or that nobody may start."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.errors import MissingToolError
from gpubench.schedulers.batch import call


@pytest.mark.parametrize("mode", [None, 0o644])
def test_a_command_that_cannot_be_started_here_is_missing(tmp_path: Path, mode: int | None) -> None:
    if mode is not None:
        (tmp_path / "sbatch").write_text("#!/bin/sh\n")
        (tmp_path / "sbatch").chmod(mode)
    with pytest.raises(MissingToolError, match="there is no sbatch on this machine; run it on a login node"):
        call(["sbatch"], env={"PATH": str(tmp_path)})
