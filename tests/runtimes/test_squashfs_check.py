"""Before the first run each node compares an image's file with its sidecar; it reads the whole file once a day."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from gpubench import resources
from gpubench.render.jinja import environment
from tests.conftest import need

COUNTING = """#!/bin/sh
echo read >>"$READS"
exec {sha256sum} "$@"
"""


class Node:
    """What a node's check of one file says, and how often it has read the file."""

    def __init__(self, directory: Path) -> None:
        self.file, self.scratch = directory / "image.sqsh", directory / "scratch"
        self.reads, tools = directory / "reads", directory / "tools"
        tools.mkdir()
        self.scratch.mkdir()
        self.reads.touch()
        (tools / "sha256sum").write_text(COUNTING.format(sha256sum="/usr/bin/sha256sum"))
        (tools / "sha256sum").chmod(0o755)
        self.file.write_bytes(b"hsqs" * 1000)
        said = {"squashfs_sha256": hashlib.sha256(self.file.read_bytes()).hexdigest()}
        self.file.with_name("image.sqsh.json").write_text(json.dumps(said))
        self.env = {"PATH": f"{tools}:/usr/bin:/bin", "READS": str(self.reads), "SCRATCHDIR": str(self.scratch)}
        self.notes = self.scratch / f"gpubench-checked-{os.getuid()}"

    def check(self) -> tuple[int, str]:
        text = environment(resources.job_templates()).get_template("runtimes/squashfs.sh.j2").render()
        words = ["bash", "-uc", text + '\nbash -c "$GPUBENCH_CHECK" gpubench "$1"', "job.sh", str(self.file)]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, check=False, timeout=30)
        return done.returncode, done.stderr

    @property
    def times_read(self) -> int:
        return len(self.reads.read_text().splitlines())


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_file_is_read_once_a_day_and_again_when_it_was_touched(node: Node) -> None:
    assert [node.check() for _ in range(3)] == [(0, "")] * 3
    assert node.times_read == 1
    (note,) = node.notes.iterdir()
    yesterday = note.stat().st_mtime - 86_401
    os.utime(note, (yesterday, yesterday))
    assert (node.check(), node.times_read) == ((0, ""), 2)
    node.file.write_bytes(node.file.read_bytes())
    assert (node.check(), node.times_read) == ((0, ""), 3)


def test_changed_bytes_are_found_also_after_a_good_check_and_leave_no_note(node: Node) -> None:
    assert node.check() == (0, "")
    before, data = node.file.stat(), node.file.read_bytes()
    node.file.write_bytes(b"H" + data[1:])
    os.utime(node.file, ns=(before.st_atime_ns, before.st_mtime_ns))  # who copies a file may keep its time
    for _ in range(2):
        code, said = node.check()
        assert code == 3
        assert f"{node.file} isn't the file that was imported: its sha256 is " in said


@pytest.mark.parametrize("how", ["a link", "open to others", "somebody else's"])
def test_a_note_that_somebody_else_could_write_does_not_count(node: Node, how: str, tmp_path: Path) -> None:
    assert node.check() == (0, "")
    if how == "a link":
        node.notes.rename(tmp_path / "theirs")
        node.notes.symlink_to(tmp_path / "theirs")
    elif how == "open to others":
        node.notes.chmod(0o777)
    else:
        need(os.geteuid() == 0, "root, to make a directory of somebody else's")
        os.chown(node.notes, 65534, -1)
    assert [node.check() for _ in range(2)] == [(0, "")] * 2
    assert node.times_read == 3


def test_where_no_note_can_be_written_the_file_is_read_each_time(node: Node) -> None:
    node.scratch.rmdir()
    node.scratch.touch()
    assert [node.check() for _ in range(2)] == [(0, "")] * 2
    assert node.times_read == 2
