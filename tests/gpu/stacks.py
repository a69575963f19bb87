"""The stacks of ``docker/compatibility.toml`` that have GPU workers, with their real dask-cuda and no GPU.

The two of ucxx are images of kind ``venv``, as users get them. Those of ucx-py come by conda, which is out of a test's
reach: their Dask, dask-cuda, numba, pandas and pynvml are wheels, kept in a venv of its own by a hashed lock; ucx-py
isn't among them, so they run over tcp. ``tests/stand_ins/README.md`` says what stands in for the rest.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubench.images import folders
from gpubench.images.kinds.base import images_root
from gpubench.images.kinds.venvs import ensure
from gpubench.images.process import WHEELS_ONLY, run_uv

STAND_INS = Path(__file__).parents[1] / "stand_ins" / "gpu"
IMAGES = {"ucxx-0.45.1": "1.19.0,stack=ucxx-0.45.1", "ucxx-0.52.0": "1.22.0,stack=ucxx-0.52.0"}
OLD = {"ucx-py-0.35": "dask-cuda-23.12", "ucx-py-0.29": "dask-cuda-22.12"}
STACKS = (*IMAGES, *OLD)


@dataclasses.dataclass(frozen=True)
class GpuStack:
    """``env`` are the variables of an image's processes, ``ucx`` its UCX (empty: none)."""

    name: str
    python: str
    ucx: str
    env: Mapping[str, str]

    def variables(self, nvml: Path, protocol: str, more: Mapping[str, str]) -> dict[str, str]:
        """Those of a run's processes. ``nvml`` is the directory of the stand-in.

        Over ucx a worker makes a context on its GPU before UCX starts: numba's simulator, or the stand-in for
        ``cuda.core``, do as if. UCX loads its module for GPU memory, with the stand-in for the driver's library.
        """
        driver = [str(nvml / "cuda")] if protocol == "ucx" else []
        libraries = [str(nvml), *driver, *(path for path in (self.env.get("LD_LIBRARY_PATH"),) if path)]
        # The workers' CPUs: the first two that this test may use.
        cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
        found = {
            **self.env,
            "LD_LIBRARY_PATH": ":".join(libraries),
            "PYTHONPATH": str(STAND_INS),
            "STAND_IN_CPUS": cpus,
        }
        if protocol == "ucx":
            found |= {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo", "NUMBA_ENABLE_CUDASIM": "1"}
        return found | {**more}


def obtain(name: str, python39: str) -> GpuStack:
    """The stack, built if it isn't there from an earlier test."""
    if name in IMAGES:
        ((image, _),) = ensure([IMAGES[name]], images_root(), lambda _line: None).values()
        return GpuStack(name, str(image.python), image.ucx_version, image.env)
    lock = Path(__file__).parent / f"{OLD[name]}.txt"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpubench-tests"

    def fill(files: Path, hold: int) -> dict[str, Any]:
        about: dict[str, Any] = {"what": name, "folder": files.parent, "log": home / f"{OLD[name]}.log", "hold": hold}
        run_uv(["venv", "--no-project", "--python", python39, str(files), "--allow-existing"], **about)
        python = str(files / "bin" / "python")
        run_uv(["pip", "sync", "--python", python, *WHEELS_ONLY, "--compile-bytecode", str(lock)], **about)
        return {}

    key = hashlib.sha256(lock.read_bytes() + python39.encode()).hexdigest()[:12]
    folder = folders.obtain(home, f"{OLD[name]}-{key}", fill, lambda _line: None)
    return GpuStack(name, str(folder.files / "bin" / "python"), "", {})
