"""Fixtures of several directories: an old Python, and a library of a driver that no test machine has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CANDIDATES = ("python3.9", *sorted(str(path) for path in Path("/root/.pyenv/versions").glob("3.9.*/bin/python")))


@pytest.fixture(scope="session")
def python39() -> str:
    """A Python 3.9 that starts: a shim of pyenv may be there without one."""
    from tests.conftest import need  # not before pytest has loaded it

    for candidate in CANDIDATES:
        try:
            done = subprocess.run(
                [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True,
                text=True,
                timeout=150,
                check=False,
            )
        except OSError:
            continue
        if done.stdout.strip() == "3.9":
            return candidate
    need(False, "an interpreter of Python 3.9, on PATH or under pyenv")
    raise AssertionError


@pytest.fixture(scope="session")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the stand-in for NVML; ``cuda`` in it has that for the driver's own library."""
    from tests.conftest import need

    compiler = shutil.which("gcc") or ""
    need(bool(compiler), "gcc, for the stand-in of libnvidia-ml.so.1")
    library = tmp_path_factory.mktemp("nvml")
    (library / "cuda").mkdir()
    for source, target in (("nvml.c", "libnvidia-ml.so.1"), ("cuda.c", "cuda/libcuda.so.1")):
        path = Path(__file__).parent / "stand_ins" / "gpu" / source
        subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library / target), str(path)], check=True)
    return library
