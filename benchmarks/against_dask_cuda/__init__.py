"""A campaign of suite ``upstream``, and dask-cuda's own scripts by hand in the same image."""
