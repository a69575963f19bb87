"""A preload of workers: Dask imports it before the worker listens, and so nobody but the run gets in."""

from gpubench.node.admission import close_to_others

close_to_others()
