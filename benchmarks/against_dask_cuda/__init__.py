"""Our workloads and ``dask_cuda.benchmarks`` on one and the same CPU cluster, in turns."""
