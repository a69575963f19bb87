"""Where CUDA, cupy and cuDF keep the kernels that they compile at first use: a folder per image, kept between runs.

In a folder of the run each worker would compile them anew, inside a repetition wherever one is first needed then.
"""

import contextlib
import hashlib
import os
import stat
from pathlib import Path
from typing import Dict

VARIABLES = {"CUPY_CACHE_DIR": "cupy", "CUDA_CACHE_PATH": "cuda", "LIBCUDF_KERNEL_CACHE_PATH": "cudf"}
"""Sources: CuPy's reference, environment variables; CUDA programming guide, environment variables; libcudf's guide,
jitify cache."""


def kernel_caches(scratches: Path, image: str) -> Dict[str, str]:
    """The variables, for an image with this identity; empty where no folder of this user's own can be made.

    Everybody may write to ``/tmp``: a folder of somebody else's could hold any code.
    """
    name = hashlib.sha256(image.encode("utf-8")).hexdigest()[:12]
    folder = scratches / f"gpubench-kernels-{os.getuid()}-{name}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        return {}
    return {variable: str(folder / part) for variable, part in VARIABLES.items()}
