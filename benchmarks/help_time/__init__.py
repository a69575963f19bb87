"""How long ``--help`` takes, beside Dask's."""
