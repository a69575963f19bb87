"""What one node sees inside an image, for ``gpubench sites check --live``: a fact a line, its name first.

``python -I inside.py LIBRARIES`` where the image's UCX lies in the folder LIBRARIES. Python >= 3.9, nothing else.
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
    program = Path(libraries).parent / "bin" / "ucx_info"
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


def main(libraries: str) -> None:
    """Write the facts of this node."""
    host = os.uname().nodename
    devices = ucx_devices(libraries)
    nics = sorted(path.name for path in INFINIBAND.glob("*"))
    lines = [f"host {host}", f"fabric {', '.join(nics)}"]
    if devices is not None:
        lines.append("ucx " + " ".join(sorted(set(devices))))
    folder = Path(os.environ["OUTDIR"]) / "facts"
    temporary = folder / f".{host}.inside"
    temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    temporary.replace(folder / f"{host}.inside")


main(sys.argv[1])
