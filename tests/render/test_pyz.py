import io
import random
import subprocess
import sys
import zipfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gpubench import resources
from gpubench.render.node_half import pack

names = st.from_regex(r"gpubench/[a-z]{1,6}/[a-z]{1,6}\.py", fullmatch=True)


@given(st.dictionaries(names, st.binary(max_size=50), max_size=6), st.randoms(use_true_random=False))
def test_the_same_source_gives_the_same_bytes_whatever_the_order(sources: dict[str, bytes], rng: random.Random) -> None:
    keys = list(sources)
    rng.shuffle(keys)
    assert pack({key: sources[key] for key in keys}) == pack(sources)


def test_it_holds_its_files_sorted_stored_and_without_the_time_of_their_writing() -> None:
    sources = resources.node_half()
    with zipfile.ZipFile(io.BytesIO(pack(sources))) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert [info.filename for info in archive.infolist()] == sorted([*sources, "__main__.py"])


def test_it_runs_as_one_file_without_the_package_beside_it(tmp_path: Path) -> None:
    (tmp_path / "node.pyz").write_bytes(pack(resources.node_half()))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "node.pyz", "run", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: gpubench run")
