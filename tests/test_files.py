import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from gpubench.errors import MissingToolError, UsageError
from gpubench.files import (
    create_exclusively,
    locked,
    temporary_directory,
    write_atomically,
)
from tests.conftest import need


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_writes_and_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "report.html"
    write_atomically(path, "old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["report.html"]


def test_a_device_and_a_pipe_are_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/null"), Path("/dev/stdout"), Path("/dev/gpubench-test")):
        before = path.lstat() if path.exists() else None
        with pytest.raises(UsageError, match="is a device or a pipe"):
            write_atomically(path, "x")
        after = path.lstat() if path.exists() else None
        assert (before and (before.st_ino, before.st_mode)) == (after and (after.st_ino, after.st_mode))


def test_the_file_has_the_mode_that_the_umask_gives(tmp_path: Path) -> None:
    write_atomically(tmp_path / "plan.json", "x")
    (tmp_path / "usual").write_text("x")
    assert (tmp_path / "plan.json").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize(("number", "words"), [(errno.ENOSPC, "free some space"), (errno.EROFS, "read-only")])
def test_a_failed_write_is_one_line_and_the_old_file_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    path = tmp_path / "report.html"
    write_atomically(path, "old")

    def refuse(_handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(MissingToolError) as caught:
        write_atomically(path, "new")
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["report.html"]


def test_what_a_dead_writer_left_goes_at_the_next_write_and_a_living_one_s_stays(tmp_path: Path) -> None:
    path, dead, living = (
        tmp_path / name for name in ("a[b].json", ".a[b].json.00000000.tmp", ".a[b].json.11111111.tmp")
    )
    dead.write_text("half of")
    with living.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        write_atomically(path, "new")
    assert names(tmp_path) == [living.name, path.name]


def test_a_writer_that_was_taken_for_dead_writes_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync
    taken = []

    def take_it_away(handle: int) -> None:
        fsync(handle)
        if not taken:
            taken.extend(tmp_path.glob(".*.tmp"))
            taken[0].unlink()

    monkeypatch.setattr(os, "fsync", take_it_away)
    write_atomically(tmp_path / "plan.json", b"whole")
    assert len(taken) == 1
    assert names(tmp_path) == ["plan.json"]
    assert (tmp_path / "plan.json").read_bytes() == b"whole"


def test_a_secret_is_readable_for_nobody_else_at_any_moment_also_over_an_open_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    path.chmod(0o644)
    seen: list[int] = []
    rename = Path.replace

    def watched(self: Path, target: Path) -> Path:
        seen.append(self.stat().st_mode & 0o777)
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", watched)
        write_atomically(path, "new", mode=0o600)
    assert (seen, path.stat().st_mode & 0o777, path.read_text()) == ([0o600], 0o600, "new")


def test_a_directory_that_was_moved_does_not_come_back(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="was moved or removed meanwhile: name it where it is now"):
        write_atomically(tmp_path / "campaign" / "report.html", "x", parents=False)
    assert names(tmp_path) == []


def test_of_two_who_want_a_directory_for_themselves_the_second_hears_so(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(BlockingIOError), locked(tmp_path, wait=False):
        pytest.fail("both have it")
    with locked(tmp_path, wait=False):
        assert names(tmp_path) == []


@pytest.mark.parametrize("below", ["plan.json", "x/plan.json"])
def test_a_parent_that_is_a_file(tmp_path: Path, below: str) -> None:
    (tmp_path / "outputs").write_text("")
    with pytest.raises(MissingToolError, match="a part of that path is a file"):
        write_atomically(tmp_path / "outputs" / below, "x")


@pytest.mark.system
def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        with pytest.raises(MissingToolError, match="No space left on device"):
            write_atomically(disk / "report.html", b"x" * 200_000)
        assert names(disk) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_another_users_directory(tmp_path: Path) -> None:
    need(os.geteuid() != 0 or shutil.which("setpriv") is not None, "setpriv: root may write anywhere")
    # Root may write anywhere, so a child process gives up that right first.
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    code = textwrap.dedent(f"""
        from pathlib import Path
        from gpubench.errors import MissingToolError, UsageError
        from gpubench.files import write_atomically
        try:
            write_atomically(Path({str(locked)!r}) / "plan.json", "x")
        except MissingToolError as error:
            print(error)
    """)
    drop = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if os.geteuid() == 0 else []
    root = Path(__file__).parents[2]
    done = subprocess.run([*drop, sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert "Permission denied" in done.stdout
    assert names(locked) == []


def test_exclusive_creation_has_one_winner_and_whole_bytes(tmp_path: Path) -> None:
    path = tmp_path / "001.json"
    create_exclusively(path, "first")
    with pytest.raises(FileExistsError):
        create_exclusively(path, "second")
    assert path.read_text() == "first"
    assert names(tmp_path) == ["001.json"]


HOLDER = """
import signal
from gpubench.files import temporary_directory
with temporary_directory("a") as folder:
    (folder / "key").touch()
    print(folder, flush=True)
    signal.pause()
"""


def test_a_temporary_directory_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, others = tmp_path / "tmp", tmp_path / "others"
    for directory in (temporary, others, temporary / "gpubench-b-of-another-name"):
        directory.mkdir()
    (others / "file").touch()
    (temporary / "gpubench-a-link").symlink_to(others)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    stay = {"gpubench-a-link", "gpubench-b-of-another-name"}
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(temporary)}
    ) as holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        with temporary_directory("a") as folder:
            assert set(names(temporary)) == stay | {held.name, folder.name}
        assert set(names(temporary)) == stay | {held.name}
        holder.send_signal(signal.SIGKILL)
    assert names(held) == ["key"]
    with temporary_directory("a") as folder:
        assert set(names(temporary)) == stay | {folder.name}
        assert folder.stat().st_mode & 0o777 == 0o700
    assert set(names(temporary)) == stay
    assert names(others) == ["file"]
