"""Through UCXX."""

from typing import Any, Awaitable, Callable

import ucxx

from gpubench.workloads.bindings import endpoints


async def listen(host: str, accept: Callable[[Any], Awaitable[None]]) -> Any:  # noqa: ARG001 - the library takes none
    """Listen on a free port."""
    return await endpoints.listen(ucxx, accept)


async def connect(host: str, port: int) -> endpoints.Channel:
    """Connect to a listener."""
    return await endpoints.connect(ucxx, host, port)
