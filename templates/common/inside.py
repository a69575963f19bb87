"""What one node sees inside an image, for ``gpubench sites check --live``: a fact a line, its name first.

``python -I inside.py LIBRARIES`` where LIBRARIES is the image's LD_LIBRARY_PATH: folders parted by colons, that of its
UCX the first. Python >= 3.9, nothing else.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import List, Optional

INFINIBAND = Path("/dev/infiniband")
PATIENCE_S = 60


def ucx_devices(libraries: str) -> Optional[List[str]]:
    """``transport/device`` of all that UCX can use, from ``ucx_info -d``; None where the image has no ucx_info."""
    program = Path(libraries.partition(":")[0]).parent / "bin" / "ucx_info"
    if not program.is_file():
        return None
    done = subprocess.run(
        [str(program), "-d"],
        env={"LD_LIBRARY_PATH": libraries},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    found, transport = [], ""
    for what, name in re.findall(r"^#\s+(Transport|Device):\s+(\S+)", done.stdout, re.MULTILINE):
        if what == "Transport":
            transport = name
        else:
            found.append(f"{transport}/{name}")
    return found


DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1")


def driver(libraries: str) -> List[str]:
    """The GPU driver's libraries that a process of a run would find."""
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    env = {"LD_LIBRARY_PATH": libraries}
    words = [sys.executable, "-I", "-c", code]
    ended = {name: subprocess.run([*words, name], env=env, stderr=subprocess.DEVNULL, check=False) for name in DRIVER}
    return [name for name, done in ended.items() if done.returncode == 0]


def main(libraries: str) -> None:
    """Write the facts of this node."""
    host = os.uname().nodename
    devices = ucx_devices(libraries)
    nics = sorted(path.name for path in INFINIBAND.glob("*"))
    lines = [f"host {host}", f"fabric {', '.join(nics)}", f"driver {' '.join(driver(libraries))}"]
    if devices is not None:
        lines.append("ucx " + " ".join(sorted(set(devices))))
    folder = Path(os.environ["OUTDIR"]) / "facts"
    temporary = folder / f".{host}.inside"
    temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    temporary.replace(folder / f"{host}.inside")


main(sys.argv[1])
