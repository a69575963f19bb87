"""Through ``distributed.comm``: what Dask itself does with ``tcp://``, serialisation of the array included."""

from typing import Any, Awaitable, Callable

from distributed.comm import connect as open_comm
from distributed.comm import listen as open_listener
from distributed.protocol import to_serialize


class TcpChannel:
    """One connection."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm

    async def send(self, buffer: Any) -> None:
        """Send an array."""
        await self._comm.write({"buffer": to_serialize(buffer)})

    async def receive(self, buffer: Any) -> Any:  # noqa: ARG002 - Dask allocates what it receives
        """The array that the other side sent."""
        return (await self._comm.read())["buffer"]

    async def close(self) -> None:
        """Close both directions."""
        await self._comm.close()


class Listener:
    """A listening socket."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener
        self.port: int = listener.get_host_port()[1]

    def close(self) -> None:
        """Accept nobody any more."""
        self._listener.stop()


async def listen(host: str, accept: Callable[[Any], Awaitable[None]]) -> Listener:
    """Listen on ``host`` only, on a free port."""

    async def handle(comm: Any) -> None:
        await accept(TcpChannel(comm))

    return Listener(await open_listener(f"tcp://{host}:0", handle))


async def connect(host: str, port: int) -> TcpChannel:
    """Connect to a listener."""
    return TcpChannel(await open_comm(f"tcp://{host}:{port}"))
