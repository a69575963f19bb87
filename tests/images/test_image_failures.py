"""An index that refuses or is silent, folders that can't be written, a full disk: one line, in bounded time."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.errors import DataError
from gpubench.images.folders import Folder
from gpubench.images.kinds.venvs import check_python, ready
from tests.conftest import free_port, need

pytestmark = pytest.mark.integration


@contextlib.contextmanager
def tmpfs(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, check=False
        ).returncode
    )
    need(mounted, "root, to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def refusal(start, root: Path, spec: str, **env: str) -> tuple[int, str]:
    process = start(root, spec, **env)
    output, errors = process.communicate(timeout=150)  # the bounded time, on a machine as busy as can be
    assert "Traceback" not in errors
    assert output.count("\n") == 1
    return process.returncode, output


def test_an_index_that_refuses_ends_quickly_and_leaves_the_rest(built, start, tmp_path: Path) -> None:
    index = f"http://me:secret@127.0.0.1:{free_port()}/simple"
    code, line = refusal(start, built.root, "1.16.0", UV_DEFAULT_INDEX=index, UV_CACHE_DIR=str(tmp_path / "cache"))
    assert code == 5
    assert "the package index doesn't answer" in line
    assert "UCX 1.16.0.post2" in line
    assert "finished images are untouched" in line
    log = Path(line.rsplit("log: ", 1)[1].strip())
    assert "Connection refused" in log.read_text("utf-8")
    assert "secret" not in line + log.read_text("utf-8")
    for image, _ in built.images.values():
        ready(image)


def test_a_full_disk_is_one_line_and_leaves_nothing_half_done(built, start, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "small", "size=48m") as root:
        code, line = refusal(start, root, "1.17.0")
        assert code == 5
        assert "the disk is full" in line
        assert "No space left" in line
        assert sorted(path.name for path in (root / "venv").iterdir()) == [".lock", "logs"]


def test_a_folder_that_cannot_be_written_is_one_line(start, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "readonly", "ro") as root:
        code, line = refusal(start, root, "1.17.0")
    assert code == 2
    assert "images can't be built in" in line
    assert "Read-only file system" in line
    assert "--set paths.images=DIR" in line


def test_finished_images_serve_from_a_folder_that_cannot_be_written(built, start, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "shared", "size=1m") as mount:
        subprocess.run(["mount", "--bind", built.root, mount], check=True)
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", mount], check=True)
            code, output = (process := start(mount, "1.17.0")).wait(150), process.communicate()[0]
        finally:
            subprocess.run(["umount", mount], check=True)
    assert code == 0, output


def test_a_stack_whose_python_is_gone_is_refused(tmp_path: Path) -> None:
    """Where it is planned, it is built again instead: ``test_folders``."""
    python = tmp_path / "stack" / "files" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/nonexistent/python3")
    with pytest.raises(DataError, match=r"built on a Python that is gone \(/nonexistent/python3\); the next plan"):
        check_python(Folder(tmp_path / "stack", "0" * 64, {}))
