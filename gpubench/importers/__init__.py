"""Results that other tools wrote: what reads each format, and the directory that they become.

An imported directory holds ``results.parquet`` in our columns and ``import.json``. What a source never recorded is null
there. In particular, importers never invent blocks: ``pairing`` pairs by date, and says so.
"""
