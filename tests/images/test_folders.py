"""A folder is finished or not there: builders at once, killed builders, damage. Real processes, no network."""

import hashlib
import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from gpubench.errors import DataError, MissingToolError, UsageError
from gpubench.images import folders
from tests.cli.campaigns import until

SPAWN = multiprocessing.get_context("spawn")


def fill(files: Path, hold: int) -> dict:
    time.sleep(0.3)
    (files / "lib").mkdir()
    (files / "lib" / "a.so").write_bytes(b"library")
    (files / "__pycache__").mkdir()
    return {"answer": 42}


def fill_forever(files: Path, hold: int) -> dict:
    (files / "half").write_text("half")
    time.sleep(600)
    return {}


def never(files: Path, hold: int) -> dict:
    raise AssertionError("built again")


def builder(home: Path, build, queue) -> None:
    said: list[str] = []
    folder = folders.obtain(home, "one", build, said.append)
    queue.put((folder.content, folder.facts, len(said)))


def test_a_second_call_finds_what_the_first_built(tmp_path: Path) -> None:
    first = folders.obtain(tmp_path, "one", fill, print)
    second = folders.obtain(tmp_path, "one", never, print)
    assert second == first
    assert first.facts == {"answer": 42}
    assert not (tmp_path / ".building").exists()


def test_builders_at_once_build_once(tmp_path: Path) -> None:
    queue = SPAWN.Queue()
    processes = [SPAWN.Process(target=builder, args=(tmp_path, fill, queue)) for _ in range(2)]
    for process in processes:
        process.start()
    results = [queue.get(timeout=150) for _ in processes]
    for process in processes:
        process.join(150)
    assert len({(content, str(facts)) for content, facts, _ in results}) == 1


def test_a_killed_builder_leaves_nothing_that_looks_finished(tmp_path: Path) -> None:
    process = SPAWN.Process(target=builder, args=(tmp_path, fill_forever, None))
    process.start()
    until((tmp_path / ".building" / "one" / "files" / "half").exists, "the builder")
    os.kill(process.pid, signal.SIGKILL)
    process.join(150)
    assert not (tmp_path / "one").exists()
    folder = folders.obtain(tmp_path, "one", fill, print)
    assert not (folder.files / "half").exists()
    assert not (tmp_path / ".building").exists()


def test_what_a_builder_left_that_was_killed_behind_its_last_step_is_removed_unless_somebody_builds(
    tmp_path: Path,
) -> None:
    folders.obtain(tmp_path, "one", fill, print)
    (tmp_path / ".building" / "damaged").mkdir(parents=True)
    with folders.only_builder(tmp_path, print):
        folders.obtain(tmp_path, "one", never, print)
        assert (tmp_path / ".building" / "damaged").exists()
    folders.obtain(tmp_path, "one", never, print)
    assert not (tmp_path / ".building").exists()


def test_who_waits_says_so_and_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = SPAWN.Process(target=builder, args=(tmp_path, fill_forever, None))
    process.start()
    try:
        until((tmp_path / ".building" / "one" / "files" / "half").exists, "the builder")
        monkeypatch.setattr(folders, "WAIT_S", 0.3)
        said: list[str] = []
        with pytest.raises(MissingToolError, match="has been building images"):
            folders.obtain(tmp_path, "two", never, said.append)
        assert said == [f"waiting: another gpubench is building images in {tmp_path}"]
    finally:
        process.kill()
        process.join(150)


def test_a_failing_build_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="built again"):
        folders.obtain(tmp_path, "one", never, print)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock"]


@pytest.mark.parametrize("damage", ["changed", "removed", "added", "marker", "inventory", "half"])
def test_damage_is_said_in_one_line_and_the_folder_is_built_anew(tmp_path: Path, damage: str) -> None:
    folder = folders.obtain(tmp_path, "one", fill, print)
    library = folder.files / "lib" / "a.so"
    {
        "changed": lambda: library.write_bytes(b"another"),
        "removed": library.unlink,
        "added": (folder.files / "lib" / "b.so").touch,
        "marker": lambda: (folder.path / "image.json").write_text("{"),
        "inventory": lambda: (folder.path / "inventory.json").write_text('{"lib/a.so": 3}'),
        "half": lambda: shutil.rmtree(folder.files),
    }[damage]()
    with pytest.raises(AssertionError, match="built again"):
        folders.obtain(tmp_path, "one", never, print)
    assert folder.path.exists()  # what couldn't be built anew stays as it is
    said: list[str] = []
    assert folders.obtain(tmp_path, "one", fill, said.append) == folder
    (line,) = said
    assert line.startswith(f"image folder {folder.path} is damaged: ")
    assert line.endswith("; it is built again")
    folders.read_sound(folder.path)
    assert not (tmp_path / ".building").exists()


def test_what_a_builder_still_finds_unsound_after_building_is_refused(tmp_path: Path) -> None:
    def gone(folder: folders.Folder) -> None:
        raise DataError(f"{folder.path.name} was built on a Python that is gone")

    with pytest.raises(DataError, match="a Python that is gone"):
        folders.obtain(tmp_path, "one", fill, print, sound=gone)


def test_the_digest_of_a_file_is_that_of_its_bytes_and_of_a_link_that_of_its_target(tmp_path: Path) -> None:
    contents = {f"d/{number}": bytes([number]) for number in range(250)}  # more than a thread takes at once
    contents |= {"empty": b"", "one part": b"x" * folders._PART, "parts": os.urandom(2 * folders._PART + 1)}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "to nothing").symlink_to("nowhere")
    (tmp_path / "to a folder").symlink_to("d")
    recorded = {name: digest for name, (_, _, digest) in folders.record_files(tmp_path).items()}
    digests = {name: recorded.pop(name) for name in ("to nothing", "to a folder")}
    assert recorded == {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    assert len({*digests.values(), *recorded.values()}) == len(contents) + 2
    (tmp_path / "to nothing").unlink()
    (tmp_path / "to nothing").symlink_to("elsewhere")
    (tmp_path / "parts").write_bytes(contents["parts"][:-1] + b"y" + contents["parts"][-1:])
    rows = folders.record_files(tmp_path)
    assert rows["to nothing"][2] != digests["to nothing"]
    assert rows["parts"][2] != recorded["parts"]


def test_touched_or_copied_files_with_the_same_bytes_are_fine(tmp_path: Path) -> None:
    folder = folders.obtain(tmp_path, "one", fill, print)
    (folder.files / "lib" / "a.so").touch()
    (folder.files / "__pycache__" / "late.pyc").write_bytes(b"bytecode that Python added")
    folders.read_sound(folder.path)


def test_a_reader_of_the_output_that_has_gone_is_no_fault_of_the_folder(tmp_path: Path) -> None:
    def told(_line: str) -> None:
        raise BrokenPipeError

    shutil.rmtree(folders.obtain(tmp_path, "one", fill, print).path / "files")
    with pytest.raises(BrokenPipeError):
        folders.obtain(tmp_path, "one", fill, told)


def test_a_file_in_place_of_the_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"images can't be built in .*; name a folder that you may write"):
        folders.obtain(tmp_path / "file" / "venv", "one", never, print)
