"""How two workers exchange one buffer, per communication library that Dask can use.

An adapter is a module with

- ``async listen(host, accept) -> listener``: ``await accept(channel)`` for whoever connects; ``listener.port``, and
  ``listener.close()`` to end it;
- ``async connect(host, port) -> channel``,

where a channel has ``await send(buffer)``, ``await receive(buffer) -> array`` (filled ``buffer``, or a new array where
the library allocates by itself) and ``await close()``. Buffers are one-dimensional arrays of uint8.
All run in the event loop of a Dask worker and use the very library context that the worker itself communicates with.
"""

import importlib
from typing import Any, Dict

ADAPTERS: Dict[str, str] = {"tcp": "tcp", "ucxx": "ucxx", "ucx-py": "ucx_py"}
"""Binding → module of this package; each imports its optional library, and nothing else here does."""


def adapter(binding: str) -> Any:
    """The adapter module of ``binding``.

    Raises:
        ValueError: there is none.
    """
    if binding not in ADAPTERS:
        raise ValueError(f"no adapter for binding {binding!r}; there are {', '.join(ADAPTERS)}")
    return importlib.import_module("gpubench.workloads.bindings." + ADAPTERS[binding])
