"""How two workers exchange one buffer, per communication library that Dask can use.

All runs in the event loop of a Dask worker and uses the very library context that the worker itself communicates with.
Buffers are one-dimensional arrays of uint8. Through UCX they are raw tagged messages into a buffer that is there
before: no headers, no allocation. Through TCP they pass ``distributed.comm``, serialisation of the array included, as
Dask itself does it. Each optional library is imported when its adapter is asked for.
"""

import functools
import types
from typing import Any, Awaitable, Callable, Dict

from distributed.comm import connect as open_comm
from distributed.comm import listen as open_listener
from distributed.protocol import to_serialize

Accept = Callable[[Any], Awaitable[None]]


class Channel:
    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint

    async def send(self, buffer: Any) -> None:
        await self._endpoint.send(buffer)

    async def receive(self, buffer: Any) -> Any:
        """Fill ``buffer`` with what the other side sent."""
        await self._endpoint.recv(buffer)
        return buffer

    async def close(self) -> None:
        await self._endpoint.close()


class TcpChannel:
    def __init__(self, comm: Any) -> None:
        self._comm = comm

    async def send(self, buffer: Any) -> None:
        await self._comm.write({"buffer": to_serialize(buffer)})

    async def receive(self, buffer: Any) -> Any:  # noqa: ARG002 - Dask allocates what it receives
        return (await self._comm.read())["buffer"]

    async def close(self) -> None:
        await self._comm.close()


class Tcp:
    async def listen(self, host: str, accept: Accept) -> Any:
        """Listen on ``host`` only, on a free port; ``await accept(channel)`` for whoever connects."""

        async def handle(comm: Any) -> None:
            await accept(TcpChannel(comm))

        listener = await open_listener(f"tcp://{host}:0", handle)
        return types.SimpleNamespace(port=listener.get_host_port()[1], close=listener.stop)

    async def connect(self, host: str, port: int) -> TcpChannel:
        return TcpChannel(await open_comm(f"tcp://{host}:{port}"))


class Endpoints:
    """Through UCXX or UCX-Py: listeners and endpoints of the process-wide context that Dask's back-end initialised."""

    def __init__(self, library: Any) -> None:
        self._library = library

    async def listen(self, host: str, accept: Accept) -> Any:  # noqa: ARG002 - the library takes none
        """A listener on a free port of every interface: like Dask's back-end, neither library lets one choose."""

        async def handle(endpoint: Any) -> None:
            await accept(Channel(endpoint))

        return self._library.create_listener(handle)

    async def connect(self, host: str, port: int) -> Channel:
        """An endpoint to a listener, with error handling as Dask's back-end has it."""
        return Channel(await self._library.create_endpoint(host, port))


def _ucxx() -> Endpoints:
    import ucxx

    return Endpoints(ucxx)


def _ucx_py() -> Endpoints:
    import ucp

    return Endpoints(ucp)


ADAPTERS: Dict[str, Callable[[], Any]] = {"tcp": Tcp, "ucxx": _ucxx, "ucx-py": _ucx_py}
"""By binding: imports the library, and returns what listens and connects."""


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
    async def connect_behind(*arguments: Any, **options: Any) -> Any:
        backend.init_once()
        register()
        return await connect(*arguments, **options)

    backend.UCXXConnector.connect = connect_behind
