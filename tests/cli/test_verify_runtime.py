"""``images verify`` on a machine that isn't a node of the site: which runtime starts the image there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.cli.images.verify import runtime_here
from gpubench.errors import MissingToolError, PlanRefusedError


@pytest.mark.parametrize(
    ("programs", "own", "kind", "runtime"),
    [
        (["enroot"], "pyxis", "squashfs", "enroot"),
        (["apptainer", "enroot"], "pyxis", "squashfs", "apptainer"),
        (["apptainer", "enroot"], "enroot", "squashfs", "enroot"),
        (["docker"], "pod", "docker", "docker"),
        ([], "conda", "conda", "conda"),
    ],
)
def test_a_runtime_whose_program_is_here_starts_the_image(  # noqa: PLR0917 - a table
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: list[str], own: str, kind: str, runtime: str
) -> None:
    for name in programs:
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert runtime_here(own, kind) == runtime


def test_without_any_of_them_they_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="kind squashfs is here: apptainer, enroot"):
        runtime_here("pyxis", "squashfs")
    with pytest.raises(PlanRefusedError, match="kind other can't be started"):
        runtime_here("pyxis", "other")
