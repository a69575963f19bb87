"""A question to a process that may not have our code: the code comes with the question, and leaves nothing there.

The client runs this file's text as ``__main__``: what stands there, cloudpickle sends whole, and not by its name.
"""

import sys
import tempfile
from typing import Any, Dict


def imported(archive: bytes) -> Any:
    """``inspect_process`` of a ``node.pyz``; this process's own ``gpubench``, if it has one, stays as it is."""

    def take_away() -> Dict[str, Any]:
        return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "gpubench"}

    before = take_away()
    with tempfile.NamedTemporaryFile(suffix=".pyz") as file:
        file.write(archive)
        file.flush()
        sys.path.insert(0, file.name)
        try:
            from gpubench.node import inspect_process

            return inspect_process
        finally:
            sys.path.remove(file.name)
            sys.path_importer_cache.pop(file.name, None)
            take_away()
            sys.modules.update(before)


async def ask(archive: bytes, question: str, *details: Any, dask_worker: Any) -> Any:
    """The answer of ``question(process, *details)``, a function of ``inspect_process``, for ``Client.run``.

    Dask gives the process, also a scheduler, as ``dask_worker``.
    """
    return await getattr(imported(archive), question)(dask_worker, *details)
