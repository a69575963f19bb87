"""Only processes of this run can connect to its Dask cluster: every connection begins with the run's secret.

Dask has no authentication and unpickles what it receives, so any process that reaches a listener can run code as its
user. Over ``ucx`` the binding's listener takes no address and listens on every interface of the node. Therefore the
side that connects sends the secret first, and the side that listens reads and compares that many bytes before anything
else. This costs one message of 32 bytes per connection.
"""

import functools
import hashlib
import hmac
import os
from typing import Any, Dict

VARIABLE = "GPUBENCH_ADMISSION"


def environment(protocol: str, token: str) -> Dict[str, str]:
    """What processes of a run carry: Dask's name of the protocol, like ``tcp`` or ``ucxx``, and the run's secret."""
    return {VARIABLE: f"{protocol}:{hashlib.sha256(f'admission:{token}'.encode()).hexdigest()}"}


@functools.cache  # once: a second secret per connection would be read as what Dask says
def close_to_others() -> None:
    """Let all connections of this process begin with the secret; does nothing if the environment has none.

    To be called before anything listens or connects.
    """
    protocol, _, digits = os.environ.get(VARIABLE, "").partition(":")
    if not digits:
        return
    secret = bytes.fromhex(digits)
    from distributed.comm import core
    from distributed.comm.registry import get_backend

    connector = type(get_backend(protocol).get_connector())
    connect, admit = connector.connect, core.Listener.on_connection

    @functools.wraps(connect)
    async def connect_and_say(*arguments: Any, **options: Any) -> Any:
        comm = await connect(*arguments, **options)
        await _send(comm, secret)
        return comm

    @functools.wraps(admit)
    async def hear_and_admit(listener: Any, comm: Any, *arguments: Any, **options: Any) -> Any:
        try:
            heard = await _receive(comm, len(secret))  # no time limit: it would pass while the process is stopped
        except Exception:  # noqa: BLE001 - whatever the other side does
            heard = b""
        if not hmac.compare_digest(heard, secret):
            comm.abort()
            raise core.CommClosedError("a connection without the run's secret")
        return await admit(listener, comm, *arguments, **options)

    connector.connect, core.Listener.on_connection = connect_and_say, hear_and_admit


async def _send(comm: Any, data: bytes) -> None:
    if hasattr(comm, "ep"):  # ucx-py and ucxx
        await comm.ep.send(bytearray(data))
    else:
        await comm.stream.write(data)


async def _receive(comm: Any, size: int) -> bytes:
    if hasattr(comm, "ep"):
        heard = bytearray(size)
        await comm.ep.recv(heard)
        return bytes(heard)
    return bytes(await comm.stream.read_bytes(size))
