"""A preload of GPU workers: the process is bound to the CPUs near its GPU before a library starts a thread.

dask-cuda binds one thread only, and when the worker listens already (``CPUAffinity.setup``, dask_cuda/plugins.py): the
threads of UCX and of the driver would stay on all CPUs of the step.
"""

import multiprocessing
import os

from gpubench.node import gpu_worker
from gpubench.node.spec import near_gpu

if multiprocessing.parent_process():  # the command that starts the workers imports preloads, too
    os.sched_setaffinity(0, near_gpu.expected(gpu_worker.place()) or os.sched_getaffinity(0))
