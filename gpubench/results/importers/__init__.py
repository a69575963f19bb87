"""Importers: each reads results of another tool into the columns of gpubench.

An imported directory holds ``results.parquet`` with these columns and ``import.json``. What a source never recorded is
null there. In particular, importers never invent blocks: ``results/imports`` pairs by date, and says so.
"""
