"""One folder per UCX version: the unpacked wheel of libucx."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import Any

from gpubench.errors import DataError
from gpubench.images.build_mutex import Progress
from gpubench.images.folders import Folder, obtain
from gpubench.images.installer import WHEELS_ONLY, run_uv
from gpubench.images.specs import Wheel
from gpubench.model.quantities import format_seconds


def ucx_folder(wheel: Wheel, python: Path, home: Path, progress: Progress) -> Folder:
    """The version's folder below ``home``, built if it is missing; ``python`` says for which platform."""
    digest = wheel.digest()

    def fill(files: Path, hold: int) -> dict[str, Any]:
        started = time.monotonic()
        progress(f"building UCX {wheel.version}")
        where = ["--python", str(python), "--target", str(files)]
        words = ["pip", "install", "--no-deps", *WHEELS_ONLY, *where, "-r", "-"]
        run_uv(words, what=f"UCX {wheel.version}", folder=files.parent, log=home / "logs" / f"ucx-{wheel.version}.log",
               hold=hold, text=f"libucx-cu12=={wheel.version} --hash=sha256:{digest}\n")  # fmt: skip
        facts = ask_ucx(files, wheel)
        progress(f"built UCX {wheel.version} in {format_seconds(time.monotonic() - started)}")
        return facts | {"version": wheel.version, "wheel": digest}

    return obtain(home, ucx_name(wheel), fill, progress)


def ucx_name(wheel: Wheel) -> str:
    """The folder's name: one name is one content."""
    return f"ucx-{wheel.version}-{wheel.digest()[:12]}"


def ask_ucx(files: Path, wheel: Wheel) -> dict[str, Any]:
    """Release, git revision and configure line, as the library itself says.

    Raises:
        DataError: it doesn't run, is another release than the wheel's name says, or was loaded from elsewhere.
    """
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
