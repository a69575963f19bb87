"""Images of kind ``venv``: one Python stack for all, and one folder of libucx per UCX version.

Below ``paths.images`` (default: the user's cache directory) lie, side by side::

    venv/ucxx-0.45.1-py3.11.7-<key>/files/bin/python       a stack: Python packages, no UCX
    venv/ucx-1.19.0-<key>/files/libucx/lib/libucp.so.0     one UCX version, shared by all stacks

``<key>`` is the hash of what goes in: the lock's bytes, the wheel's SHA-256, the Python version. Every input is pinned
by its own hash, so one key means one content; the content's hash is measured after the build (see ``folders``) and is
the image's id. A folder never changes once it has its name: a campaign's image stays as it was when others are built.

No venv can be moved whole (its scripts name their Python by path), but ``bin/python`` finds its packages through
``pyvenv.cfg`` beside it, wherever it lies: that is all that is ever used, so building elsewhere and renaming is safe.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpubench.errors import DataError
from gpubench.images import interpreter
from gpubench.images.compatibility import Stack
from gpubench.images.data import docker_file
from gpubench.images.folders import Folder, Progress, obtain
from gpubench.images.installer import run_uv
from gpubench.images.specs import Wheel
from gpubench.model.quantities import format_seconds
from gpubench.spec.plain import content_id

_STAND_IN = "venv/libucx.py"
_WHEELS_ONLY = ("--require-hashes", "--only-binary", ":all:")


@dataclasses.dataclass(frozen=True)
class Built:
    """An image: a row of the table and a wheel, and the two folders that hold them."""

    row: Stack
    wheel: Wheel
    stack: Folder
    ucx: Folder

    @property
    def python(self) -> Path:
        """Starts the node half."""
        return self.stack.files / "bin" / "python"

    @property
    def libraries(self) -> Path:
        """The folder of libucp."""
        return self.ucx.files / "libucx" / "lib"


def image_id(stack: Folder, ucx: Folder) -> str:
    """The same id is the same content."""
    return content_id({"stack": stack.content, "ucx": ucx.content})


def build(row: Stack, wheels: Sequence[Wheel], root: Path, progress: Progress) -> list[Built]:
    """One image per wheel, all on one stack; folders that are there already are checked, missing ones built.

    ``root`` is ``paths.images``; ``progress`` gets one line per step. Safe to call from several processes at once.

    Raises:
        MissingToolError: the index doesn't answer, the disk is full, no fitting Python.
        UsageError: ``root`` can't be written.
        DataError: a finished folder was damaged, or a wheel doesn't hold the UCX that its name says.
        PlanRefusedError: no wheel for this machine.
    """
    home = root.resolve() / "venv"
    for wheel in wheels:
        wheel.digest()  # a machine without wheels is refused before a stack is fetched
    stack = _stack(row, home, progress)
    python = stack.files / "bin" / "python"
    return [Built(row, wheel, stack, _ucx(wheel, python, home, progress)) for wheel in wheels]


def _stack(stack: Stack, home: Path, progress: Progress) -> Folder:
    python = interpreter.find(stack)
    lock, stand_in = stack.lock_file.read_bytes(), docker_file(_STAND_IN).read_bytes()
    lock_hash = hashlib.sha256(lock).hexdigest()
    key = content_id(
        {
            "lock": lock_hash,
            "libucx": hashlib.sha256(stand_in).hexdigest(),
            "python": python.version,
            "machine": platform.machine(),
        }
    )

    def fill(files: Path, hold: int) -> dict[str, Any]:
        started = time.monotonic()
        progress(
            f"building the Python stack {stack.name}: dask {stack.dask}, Python {python.version} (once, about 1.1 GB)"
        )
        log = home / "logs" / f"stack-{stack.name}.log"
        run_uv(["venv", "--no-project", "--python", python.path, str(files), "--allow-existing"],
               what=f"a venv on {python.path}", folder=files.parent, log=log, hold=hold)  # fmt: skip
        packages = next(files.glob("lib/python3*/site-packages"))
        shutil.copyfile(docker_file(_STAND_IN), packages / "libucx.py")
        words = ["pip", "sync", "--python", str(files / "bin" / "python"), *_WHEELS_ONLY, "--compile-bytecode"]
        run_uv([*words, str(stack.lock_file)], what=f"stack {stack.name}", folder=files.parent, log=log, hold=hold)
        progress(f"built the Python stack {stack.name} in {format_seconds(time.monotonic() - started)}")
        return {"python": python.version, "lock": lock_hash, "packages": _packages(packages)}

    folder = obtain(home, f"{stack.name}-py{python.version}-{key}", fill, progress)
    check_python(folder)
    return folder


def check_python(stack: Folder) -> None:
    """Whether the Python that the stack was built on is still there.

    Raises:
        DataError: it is gone.
    """
    python = stack.files / "bin" / "python"
    if not os.access(python, os.X_OK):
        raise DataError(
            f"image folder {stack.path} was built on a Python that is gone ({python.readlink()})",
            then=f"remove it (rm -r {stack.path}) and run again to rebuild it",
        )


def _packages(folder: Path) -> dict[str, str]:
    found = importlib.metadata.distributions(path=[str(folder)])
    return dict(sorted((item.metadata["Name"].lower().replace("_", "-"), item.version) for item in found))


def _ucx(wheel: Wheel, python: Path, home: Path, progress: Progress) -> Folder:
    digest = wheel.digest()

    def fill(files: Path, hold: int) -> dict[str, Any]:
        started = time.monotonic()
        progress(f"building UCX {wheel.version}")
        words = [
            "pip",
            "install",
            "--no-deps",
            *_WHEELS_ONLY,
            "--python",
            str(python),
            "--target",
            str(files),
            "-r",
            "-",
        ]
        run_uv(words, what=f"UCX {wheel.version}", folder=files.parent, log=home / "logs" / f"ucx-{wheel.version}.log",
               hold=hold, text=f"libucx-cu12=={wheel.version} --hash=sha256:{digest}\n")  # fmt: skip
        facts = _ask_ucx(files, wheel)
        progress(f"built UCX {wheel.version} in {format_seconds(time.monotonic() - started)}")
        return facts | {"version": wheel.version, "wheel": digest}

    return obtain(home, f"ucx-{wheel.version}-{digest[:12]}", fill, progress)


def _ask_ucx(files: Path, wheel: Wheel) -> dict[str, Any]:
    """Release, git revision and configure line, as the library itself says."""
    program, libraries = files / "libucx" / "bin" / "ucx_info", files / "libucx" / "lib"
    # The wheel's RUNPATH points at the machine that built it.
    env = {"LD_LIBRARY_PATH": str(libraries)}
    try:
        done = subprocess.run([program, "-v"], env=env, capture_output=True, text=True, timeout=60, check=False)
        output = done.stdout + done.stderr
    except (OSError, subprocess.SubprocessError) as error:
        output = str(error)
    said = {
        key: match[1] if (match := re.search(pattern, output)) else ""
        for key, pattern in {
            "release": r"Library version: (\S+)",
            "path": r"Library path: (\S+)",
            "revision": r"revision (\w+)",
            "configure": r"Configured with: (.*\S)",
        }.items()
    }
    if said["release"] != wheel.release or not said.pop("path").startswith(str(libraries)):
        raise DataError(
            f"the wheel of UCX {wheel.version} answers as UCX '{said['release']}': {' '.join(output.split())[:200]}",
            then="it can't be used on this machine; choose another version",
        )
    return said
