"""A campaign of suite ``contrib/upstream``, and dask-cuda's own scripts by hand in the same image."""
