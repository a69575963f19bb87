"""The Python stack below all images of a campaign: packages from a hashed lock, and no UCX."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import shutil
import time
from pathlib import Path
from typing import Any

from gpubench.errors import DataError
from gpubench.images import interpreter
from gpubench.images.build_mutex import Progress
from gpubench.images.compatibility import Stack
from gpubench.images.folders import Folder, obtain
from gpubench.images.installer import WHEELS_ONLY, run_uv
from gpubench.model.quantities import format_seconds
from gpubench.resources import docker_file
from gpubench.spec.plain import content_id

_STAND_IN = "venv/libucx.py"


def stack_folder(stack: Stack, home: Path, progress: Progress) -> Folder:
    """The stack's folder below ``home``, built if it is missing; raises as ``venv.build``."""
    python = interpreter.find(stack)
    lock_hash = hashlib.sha256(stack.lock_file.read_bytes()).hexdigest()

    def fill(files: Path, hold: int) -> dict[str, Any]:
        started = time.monotonic()
        progress(f"building the Python stack {stack.name}: dask {stack.dask}, Python {python.version}")
        log = home / "logs" / f"stack-{stack.name}.log"
        run_uv(["venv", "--no-project", "--python", python.path, str(files), "--allow-existing"],
               what=f"a venv on {python.path}", folder=files.parent, log=log, hold=hold)  # fmt: skip
        packages = next(files.glob("lib/python3*/site-packages"))
        shutil.copyfile(docker_file(_STAND_IN), packages / "libucx.py")
        words = ["pip", "sync", "--python", str(files / "bin" / "python"), *WHEELS_ONLY, "--compile-bytecode"]
        run_uv([*words, str(stack.lock_file)], what=f"stack {stack.name}", folder=files.parent, log=log, hold=hold)
        progress(f"built the Python stack {stack.name} in {format_seconds(time.monotonic() - started)}")
        return {"python": python.version, "lock": lock_hash, "packages": _packages(packages)}

    return obtain(home, stack_name(stack), fill, progress, sound=check_python)


def stack_name(stack: Stack) -> str:
    """The folder's name: one name is one content. Raises MissingToolError where no fitting Python is here."""
    python = interpreter.find(stack).version
    key = content_id(
        {
            "lock": hashlib.sha256(stack.lock_file.read_bytes()).hexdigest(),
            "libucx": hashlib.sha256(docker_file(_STAND_IN).read_bytes()).hexdigest(),
            "python": python,
            "machine": platform.machine(),
        }
    )
    return f"{stack.name}-py{python}-{key}"


def check_python(stack: Folder) -> None:
    """Whether the Python that the stack was built on is still there.

    Raises:
        DataError: it is gone.
    """
    python = stack.files / "bin" / "python"
    if not os.access(python, os.X_OK):
        raise DataError(
            f"image folder {stack.path} was built on a Python that is gone ({python.readlink()})",
            then="the next plan or bench of its version builds it anew",
        )


def _packages(folder: Path) -> dict[str, str]:
    found = importlib.metadata.distributions(path=[str(folder)])
    return dict(sorted((item.metadata["Name"].lower().replace("_", "-"), item.version) for item in found))
