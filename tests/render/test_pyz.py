import ast
import hashlib
import io
import os
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


def test_other_source_gives_other_bytes() -> None:
    sources = resources.node_half()
    name = "gpubench/node/main.py"
    changed = {**sources, name: sources[name] + b"#"}
    assert hashlib.sha256(pack(changed)).digest() != hashlib.sha256(pack(sources)).digest()


def test_neither_the_time_nor_the_mode_of_the_files_is_in_it(tmp_path: Path) -> None:
    copy = tmp_path / "gpubench"
    sources = resources.node_half()
    for number, (name, data) in enumerate(sources.items()):
        path = copy.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)
        os.utime(path, (1e9 + number, 1e9 + number))
    found = {str(path.relative_to(tmp_path)): path.read_bytes() for path in copy.glob("**/*.py")}
    assert pack(found) == pack(sources)
    with zipfile.ZipFile(io.BytesIO(pack(sources))) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert [info.filename for info in archive.infolist()] == sorted([*sources, "__main__.py"])


def test_it_holds_the_node_half_and_nothing_of_the_tool() -> None:
    found = set(resources.node_half())
    package = resources.PACKAGE
    assert found == {"gpubench/__init__.py"} | {
        f"gpubench/{path.relative_to(package)}" for path in (package / "node").rglob("*.py")
    }
    assert {"gpubench/node/main.py", "gpubench/node/spec/run.py", "gpubench/node/writer/atomic.py"} < found


def test_every_module_that_the_node_half_imports_of_gpubench_is_in_it() -> None:
    sources = resources.node_half()
    modules = {name.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".") for name in sources}
    for name, data in sources.items():
        for node in ast.walk(ast.parse(data)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpubench"):
                assert node.module in modules, f"{name} imports {node.module}"


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
