"""A preload of workers that a nanny starts in processes of their own: Dask imports it before the worker listens.

Only processes of the run can connect. The process is bound to the CPUs near its GPU before a library starts a thread:
dask-cuda binds one thread only, and when the worker listens already (``CPUAffinity.setup``, dask_cuda/plugins.py), so
that the threads of UCX and of the driver would stay on all CPUs of the step. And in all workers cupy allocates by RMM,
whatever has been imported before.
"""

import multiprocessing
import os

from gpubench.node import admission, gpu_worker
from gpubench.node.spec import near_gpu
from gpubench.node.workloads import device

admission.close_to_others()
if multiprocessing.parent_process():  # the command that starts the workers imports preloads, too
    os.sched_setaffinity(0, near_gpu.expected(gpu_worker.place()) or os.sched_getaffinity(0))
device.allocate_arrays_by_rmm()
