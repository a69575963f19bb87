"""``dask cuda worker``: a worker in a process of its own, under a nanny, for every GPU that NVML counts.

Real: nannies, workers, and every option that both commands have. Left out: all that needs a GPU. ``--rmm-pool-size``
only becomes what the stand-in for RMM says.
"""

import ctypes
import os
from typing import List


class worker:  # noqa: N801 - as the original has it
    @staticmethod
    def main(args: List[str], prog_name: str) -> None:
        from distributed.cli.dask_worker import main

        if "--rmm-pool-size" in args:
            place = args.index("--rmm-pool-size")
            os.environ["STAND_IN_RMM_POOL"] = args[place + 1]
            args = [*args[:place], *args[place + 2 :]]
        gpus = ctypes.c_uint(0)
        ctypes.CDLL("libnvidia-ml.so.1").nvmlDeviceGetCount_v2(ctypes.byref(gpus))
        seen = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(gpus.value))))
        main.main(args=[*args, "--nanny", "--nworkers", str(len(seen.split(",")))], prog_name=prog_name)
