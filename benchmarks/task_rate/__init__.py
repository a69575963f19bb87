"""Does our ``tasks`` measure what parsl-perf and a bare Dask loop measure? Rates side by side, on the same workers."""
