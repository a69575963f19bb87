"""The group ``gpubench cluster``: standing Dask clusters, which campaigns never use."""
