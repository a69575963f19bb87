"""The workers' side of ``message``: functions that ``client.run`` starts in the event loop of each worker.

A worker's end of all its channels lives in this module, by the token of the measurement that opened it.
"""

import dataclasses
import os
import socket
import time
from typing import Any, Dict

import numpy as np

from gpubench.workloads import bindings, device

GREETING_BYTES = 8
"""Size of the greeting that says which worker connected."""


@dataclasses.dataclass
class _End:
    index: int
    device: str
    size: int
    listener: Any = None
    channels: Dict[int, Any] = dataclasses.field(default_factory=dict)


_ENDS: Dict[str, _End] = {}


async def open_end(token: str, binding: str, hosts: Dict[str, str], *, kind: str, size: int, dask_worker: Any) -> int:
    """Listen for the other workers; the port. ``hosts`` has every worker's host by address, in the order of workers."""
    adapter = bindings.adapter(binding)
    end = _ENDS[token] = _End(list(hosts).index(dask_worker.address), kind, size)

    async def accept(channel: Any) -> None:
        greeting = await channel.receive(np.zeros(GREETING_BYTES, dtype="uint8"))
        end.channels[int(greeting.view("int64")[0])] = channel
        # Only after this answer may the other side count on being known here.
        await channel.send(greeting)

    end.listener = await adapter.listen(hosts[dask_worker.address], accept)
    return int(end.listener.port)


async def connect_end(token: str, binding: str, hosts: Dict[str, str], ports: Dict[str, int]) -> None:
    """Connect to every worker that comes later in the order, and say who connects."""
    adapter = bindings.adapter(binding)
    end = _ENDS[token]
    greeting = np.array([end.index], dtype="int64").view("uint8")
    for index, (address, host) in enumerate(hosts.items()):
        if index > end.index:
            channel = await adapter.connect(host, ports[address])
            await channel.send(greeting)
            await channel.receive(np.zeros(GREETING_BYTES, dtype="uint8"))
            end.channels[index] = channel


async def play(token: str, first: int, second: int, seed: int, trips: int) -> Dict[str, Any]:
    """One side of ``trips`` ping-pongs between workers ``first`` and ``second``: the first pings, the second echoes.

    Returns ``process`` (who played), ``received_bytes``, and of the pinging side ``seconds`` (sum over the trips, each
    timed for itself) and ``wrong_bytes``.
    """
    end = _ENDS[token]
    if end.index == second:
        figures = await _echo(end, end.channels[first], trips)
    else:
        figures = await _ping(end, end.channels[second], seed, trips)
    return {"process": f"{socket.gethostname()}:{os.getpid()}", **figures}


async def _echo(end: _End, channel: Any, trips: int) -> Dict[str, Any]:
    buffer = device.array_module(end.device).empty(end.size, dtype="uint8")
    received_bytes = 0
    for _ in range(trips):
        received = await channel.receive(buffer)
        await channel.send(received)
        received_bytes += received.nbytes
    return {"received_bytes": received_bytes}


async def _ping(end: _End, channel: Any, seed: int, trips: int) -> Dict[str, Any]:
    xp = device.array_module(end.device)
    sent = xp.asarray(np.frombuffer(np.random.RandomState(seed).bytes(end.size), dtype="uint8").copy())
    buffer = xp.empty(end.size, dtype="uint8")
    seconds, received_bytes, wrong_bytes = 0.0, 0, 0
    for _ in range(trips):
        sent += 1  # wraps; every byte differs from the last trip's, so nothing stale can pass for an echo
        if end.device == "gpu":
            device.synchronize()  # UCX doesn't wait for kernels
        start = time.perf_counter()
        await channel.send(sent)
        received = await channel.receive(buffer)
        seconds += time.perf_counter() - start
        received_bytes += received.nbytes
        wrong_bytes += int((received != sent).sum()) if received.shape == sent.shape else end.size
    return {"received_bytes": received_bytes, "seconds": seconds, "wrong_bytes": wrong_bytes}


async def close_end(token: str) -> None:
    """Close this worker's channels and listener, if it has any."""
    end = _ENDS.pop(token, None)
    if end is None:
        return
    for channel in end.channels.values():
        await channel.close()
    if end.listener is not None:
        end.listener.close()
