"""A preload of GPU workers: in all of them cupy allocates by RMM, whatever has been imported before."""

from gpubench.node.workloads.device import allocate_arrays_by_rmm

allocate_arrays_by_rmm()
