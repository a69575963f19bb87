"""The environment variables of every process of a run: built, not inherited."""

import contextlib
import hashlib
import os
import pwd
import stat
from pathlib import Path
from typing import Dict, List, Mapping, Tuple

from gpubench.node import gpu
from gpubench.node.machine import NODE_NAME_VARIABLE
from gpubench.node.spec import PROCESS_DEFAULTS, RunSpec
from gpubench.node.workloads import clock
from gpubench.node.workloads.nvml import VISIBLE
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE

# Variables that would change a benchmark unnoticed. They are dropped, with a warning.
FOREIGN_PREFIXES = (
    "UCX_",
    "UCXPY_",
    "DASK_",
    "RAPIDS_",
    "CUDA_",
    "PYTHON",
    "LD_",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "NUMBA_",
)

LOGGING = ("UCX_LOG_FILE", "UCX_LOG_LEVEL", "UCX_PROTO_INFO")

CONNECT_TIMEOUT = "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"
USER = "gpubench"
"""Name of a user that the image's list of users doesn't have: ``getpass.getuser``, which parsl calls, would fail."""
DASKS_CONNECT_TIMEOUT_S = 30.0
"""Dask's own time limit to connect: too short for a scheduler of hundreds of workers that start at once."""


def process_environment(
    spec: RunSpec, inherited: Mapping[str, str], scratch: Path, mark: str
) -> Tuple[Dict[str, str], List[str]]:
    """The environment of scheduler, workers and client, and warnings about what was dropped.

    ``HOME`` is the scratch directory: a user's ``~/.config/dask`` and user site-packages belong to no variant.
    ``mark`` finds the run's processes in the process table. UCX logs at level info into the scratch directory: that is
    where it names the lanes that it has, and, once an operation is first done, how it does it (UCX_PROTO_INFO).
    """
    env = {} if _has_name() else {"LOGNAME": USER, "USER": USER}
    env.update({name: inherited[name] for name in spec.env_allow if name in inherited})
    env.update(PROCESS_DEFAULTS)
    env.update(
        HOME=str(scratch),
        TMPDIR=str(scratch),
        PYTHONNOUSERSITE="1",
        PYTHONUNBUFFERED="1",
        PYTHONFAULTHANDLER="1",
        DASK_TEMPORARY_DIRECTORY=str(scratch),
        # Dask names its processes where it finds setproctitle, which writes over the environment that the mark is found
        # in unless it is told not to. https://github.com/dvarrazzo/py-setproctitle#environment-variables
        SPT_NOENV="1",
    )
    if spec.deadlines.start_s > DASKS_CONNECT_TIMEOUT_S:
        env[CONNECT_TIMEOUT] = f"{spec.deadlines.start_s:g}s"
    if spec.protocol == "ucx":
        env.update(UCX_LOG_LEVEL="info", UCX_LOG_FILE=str(scratch / "ucx-%p.log"), UCX_PROTO_INFO="y")
    env.update(spec.env)
    if spec.device == "gpu":
        # Dask's command starts a worker on each GPU that is named, also by the site: those of this run's workers only.
        chosen = gpu.chosen(spec.workers_per_node, {**inherited, **spec.env})
        env.update({name: value for name, value in chosen.items() if name == VISIBLE or name not in spec.env})
    env[CLUSTER_VARIABLE] = mark
    env.update({name: inherited[name] for name in (clock.VARIABLE, NODE_NAME_VARIABLE) if name in inherited})
    foreign = [name for name in sorted(inherited) if name.startswith(FOREIGN_PREFIXES)]
    dropped = [name for name in foreign if name not in env and name not in spec.env_allow]
    changed = [name for name in foreign if env.get(name, inherited[name]) != inherited[name]]
    warnings = []
    if dropped:
        warnings.append("dropped from the environment: {}".format(", ".join(dropped)))
    if changed:
        warnings.append("the run's own value was used instead of the environment's: {}".format(", ".join(changed)))
    return env, warnings


KERNEL_CACHES = {"CUPY_CACHE_DIR": "cupy", "CUDA_CACHE_PATH": "cuda", "LIBCUDF_KERNEL_CACHE_PATH": "cudf"}
"""Sources: CuPy's reference, environment variables; CUDA programming guide, environment variables; libcudf's guide,
jitify cache."""


def kernel_caches(scratches: Path, image: str) -> Dict[str, str]:
    """Where CUDA, cupy and cuDF keep the kernels that they compile at first use: a folder per image, for all its runs.

    In a folder of the run each worker would compile them anew, inside a repetition wherever one is first needed then.
    Empty where no folder of this user's own can be made below ``scratches``: everybody may write to ``/tmp``, and a
    folder of somebody else's could hold any code. ``image`` is the image's identity.
    """
    name = hashlib.sha256(image.encode("utf-8")).hexdigest()[:12]
    folder = scratches / f"gpubench-kernels-{os.getuid()}-{name}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        return {}
    return {variable: str(folder / part) for variable, part in KERNEL_CACHES.items()}


def _has_name() -> bool:
    try:
        return bool(pwd.getpwuid(os.getuid()).pw_name)
    except KeyError:
        return False


def ucx_variables(environ: Mapping[str, str]) -> Dict[str, str]:
    """The ``UCX_*`` and ``UCXPY_*`` of an environment, less those that this module sets to read UCX's log."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(("UCX_", "UCXPY_")) and name not in LOGGING
    }


# Before anything else is imported: bindings add UCX_* of their own when they are.
AT_START = dict(os.environ)
