import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.node.writer.atomic import write_atomic

ENDLESS = """
import sys
from pathlib import Path
from gpubench.node.writer.atomic import write_atomic
path = Path(sys.argv[1])
number = 0
while True:
    write_atomic(path, (str(number % 10) * 200_000).encode())
    if number == 20:
        print("going", flush=True)
    number += 1
"""


def test_a_file_is_written_whole_with_the_asked_mode_and_nothing_else_beside_it(tmp_path: Path) -> None:
    for mode in (0o600, 0o644):
        write_atomic(tmp_path / "a.json", b"one", mode=mode)
        assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == mode
    assert (tmp_path / "a.json").read_bytes() == b"one"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(("umask", "mode"), [("077", 0o600), ("022", 0o644), ("002", 0o664)])
def test_permissions_follow_the_umask(tmp_path: Path, umask: str, mode: int) -> None:
    code = "import sys, pathlib; from gpubench.node.writer.atomic import write_atomic; "
    code += "write_atomic(pathlib.Path(sys.argv[1]), b'x')"
    words = ["sh", "-c", f'umask {umask} && exec "$@"', "sh", sys.executable, "-c", code, str(tmp_path / "a")]
    subprocess.run(words, check=True)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_a_file_is_replaced(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", b"a long first content")
    write_atomic(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"two"


def test_what_was_there_stays_when_writing_fails(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "inside").touch()
    with pytest.raises(OSError, match="directory"):
        write_atomic(tmp_path / "a", b"two")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "missing" / "b", b"two")


def test_a_reader_sees_one_whole_version_or_another_also_when_the_writer_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with subprocess.Popen([sys.executable, "-c", ENDLESS, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        writer.stdout.readline()
        seen = {path.read_bytes() for _ in range(100)}
        writer.send_signal(signal.SIGKILL)
    seen.add(path.read_bytes())
    assert {len(data) for data in seen} == {200_000}
    assert all(len(set(data)) == 1 for data in seen)
