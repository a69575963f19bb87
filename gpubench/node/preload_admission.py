"""A preload of workers: Dask imports it before the worker listens, so that only processes of the run can connect."""

from gpubench.node.admission import close_to_others

close_to_others()
