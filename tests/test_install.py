"""Which Python ``make install`` takes; the Pythons and uv are stand-ins, the installer is the real one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PYTHON = """#!{real}
import sys, sysconfig
if sys.argv[1] == "-c":
    sys.version_info, sys.base_prefix = (3, {minor}, 0), {prefix!r}
    sysconfig.get_config_vars()["CONFIG_ARGS"] = {options!r}
    exec(sys.argv[2])
"""
UV = """#!/bin/sh
[ "$1" = venv ] && echo "$4" >"$SAID"
mkdir -p fresh/bin && cp "$0" fresh/bin/python
"""
PLAIN, PGO = "'--enable-shared'", "'--enable-optimizations' '--with-lto'"


def chosen(folder: Path, pythons: dict[str, tuple[int, str, str]], **env: str) -> tuple[int, str, str]:
    """Exit code, name of the Python that was taken, and what was said; ``pythons``: minor version, prefix, options."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("bash", "dirname", "touch", "mkdir", "cp", "sh"):
        (programs / name).symlink_to(shutil.which(name) or "")
    (programs / "uv").write_text(UV)
    for name, (minor, prefix, options) in pythons.items():
        text = PYTHON.format(real=sys.executable, minor=minor, prefix=prefix, options=options)
        (programs / name).write_text(text)
    for path in programs.iterdir():
        if not path.is_symlink():
            path.chmod(0o755)
    said = folder / "said"
    done = subprocess.run(
        [programs / "bash", ROOT / "requirements" / "install.sh", "fresh", "tool"],
        cwd=folder,
        env={"PATH": str(programs), "SAID": str(said), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, said.read_text().strip() if said.exists() else "", done.stderr


@pytest.mark.parametrize(
    ("pythons", "taken"),
    [
        ({"python3": (11, "/a", PGO), "python3.13": (13, "/b", PGO)}, "python3"),
        ({"python3": (11, "/a", PLAIN), "python3.13": (13, "/b", PGO)}, "python3.13"),
        ({"python3": (11, "/a", PLAIN), "python3.12": (12, "/usr", PLAIN)}, "python3.12"),
        ({"python3": (10, "/a", PGO), "python3.11": (11, "/b", PGO)}, "python3.11"),
    ],
    ids=["the first", "an optimized one", "a distribution's own", "a new enough one"],
)
def test_the_first_optimized_python_is_taken(
    tmp_path: Path, pythons: dict[str, tuple[int, str, str]], taken: str
) -> None:
    code, name, said = chosen(tmp_path, pythons)
    assert (code, name) == (0, taken), said
    assert "with Python 3." in said


def test_the_python_that_is_named_is_taken_or_refused(tmp_path: Path) -> None:
    pythons = {"python3": (11, "/a", PGO), "python3.12": (12, "/a", PLAIN), "old": (10, "/a", PGO)}
    (tmp_path / "a").mkdir()
    assert chosen(tmp_path / "a", pythons, PYTHON="python3.12")[:2] == (0, "python3.12")
    (tmp_path / "b").mkdir()
    code, name, said = chosen(tmp_path / "b", pythons, PYTHON="old")
    assert (code, name) == (5, "")
    assert said.splitlines()[-1] == "make install: PYTHON=old can't be run, or is older than Python 3.11"
