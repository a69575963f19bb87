"""What UCXX and UCX-Py share: listeners and endpoints of the process-wide context that Dask's back-end initialised.

Raw tagged messages into a buffer that is there before: no headers, no allocation, unlike ``tcp``.
"""

from typing import Any, Awaitable, Callable


class Channel:
    """One endpoint."""

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint

    async def send(self, buffer: Any) -> None:
        """Send an array."""
        await self._endpoint.send(buffer)

    async def receive(self, buffer: Any) -> Any:
        """Fill ``buffer`` with what the other side sent."""
        await self._endpoint.recv(buffer)
        return buffer

    async def close(self) -> None:
        """Flush and close."""
        await self._endpoint.close()


async def listen(library: Any, accept: Callable[[Any], Awaitable[None]]) -> Any:
    """A listener on a free port of every interface: like Dask's back-end, neither library lets one choose."""

    async def handle(endpoint: Any) -> None:
        await accept(Channel(endpoint))

    return library.create_listener(handle)


async def connect(library: Any, host: str, port: int) -> Channel:
    """An endpoint to a listener, with error handling as Dask's back-end has it."""
    return Channel(await library.create_endpoint(host, port))
