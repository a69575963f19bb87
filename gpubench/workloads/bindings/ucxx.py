"""Through UCXX."""

import functools
from typing import Any, Awaitable, Callable

import ucxx

from gpubench.workloads.bindings import endpoints


def keep_notifier() -> None:
    """Keep the binding's notifier thread from the first connection on, in a process that listens nowhere.

    distributed-ucxx (0.45 to 0.52) ends the thread behind every connection that the process opens while it has no
    other, and waits up to 1 s for its end: a client's first connection would take a second longer. Where the binding
    has no such thread, nothing changes. The process has to end by ``os._exit``: the thread lives on.
    """
    from distributed_ucxx import ucxx as backend

    register = functools.cache(getattr(backend, "_register_dask_resource", lambda: None))
    connect = backend.UCXXConnector.connect

    @functools.wraps(connect)
    async def connect_behind(*words: Any, **options: Any) -> Any:
        backend.init_once()
        register()
        return await connect(*words, **options)

    backend.UCXXConnector.connect = connect_behind


async def listen(host: str, accept: Callable[[Any], Awaitable[None]]) -> Any:  # noqa: ARG001 - the library takes none
    """Listen on a free port."""
    return await endpoints.listen(ucxx, accept)


async def connect(host: str, port: int) -> endpoints.Channel:
    """Connect to a listener."""
    return await endpoints.connect(ucxx, host, port)
