"""The workers' side of ``message``: functions that ``client.run`` starts in the event loop of each worker.

A worker's end of all its channels lives in this module, by the token of the measurement that opened it.
"""

import dataclasses
import os
import socket
import time
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from gpubench.workloads import bindings, device

GREETING_BYTES = 8
"""Size of the greeting that says which worker connected."""


@dataclasses.dataclass
class _End:
    index: int
    device: str
    sent: Any
    listener: Any = None
    channels: Dict[int, Any] = dataclasses.field(default_factory=dict)


_ENDS: Dict[str, _End] = {}


async def open_end(
    token: str, binding: str, hosts: Dict[str, str], *, kind: str, size: int, seed: int, dask_worker: Any
) -> int:
    """Listen for the other workers; the port. ``hosts`` has every worker's host by address, in the order of workers."""
    adapter = bindings.adapter(binding)
    index = list(hosts).index(dask_worker.address)
    pattern = np.frombuffer(np.random.RandomState(seed + index).bytes(size), dtype="uint8").copy()
    end = _ENDS[token] = _End(index, kind, device.array_module(kind).asarray(pattern))

    async def accept(channel: Any) -> None:
        greeting = await channel.receive(np.zeros(GREETING_BYTES, dtype="uint8"))
        end.channels[int(greeting.view("int64")[0])] = channel
        # Only after this answer may the other side count on being known here.
        await channel.send(greeting)

    end.listener = await adapter.listen(hosts[dask_worker.address], accept)
    return int(end.listener.port)


async def connect_end(
    token: str, binding: str, hosts: Dict[str, str], ports: Dict[str, int], pairs: Sequence[Tuple[int, int]]
) -> None:
    """Connect to the second worker of every pair in which this one is the first, and say who connects."""
    adapter = bindings.adapter(binding)
    end = _ENDS[token]
    greeting = np.array([end.index], dtype="int64").view("uint8")
    workers = list(hosts.items())
    for index in (second for first, second in pairs if first == end.index):
        address, host = workers[index]
        channel = await adapter.connect(host, ports[address])
        await channel.send(greeting)
        await channel.receive(np.zeros(GREETING_BYTES, dtype="uint8"))
        end.channels[index] = channel


async def play(token: str, first: int, second: int, trips: int) -> Dict[str, Any]:
    """One side of ``trips`` ping-pongs between workers ``first`` and ``second``: the first pings, the second echoes.

    Returns ``process`` (who played), ``received_bytes``, and of the pinging side ``trips_s`` (seconds of each round
    trip) and ``wrong_bytes``.
    """
    end = _ENDS[token]
    if end.index == second:
        figures = await _echo(end, end.channels[first], trips)
    else:
        figures = await _ping(end, end.channels[second], trips)
    return {"process": f"{socket.gethostname()}:{os.getpid()}", **figures}


async def _echo(end: _End, channel: Any, trips: int) -> Dict[str, Any]:
    buffer = device.array_module(end.device).empty(end.sent.size, dtype="uint8")
    received_bytes = 0
    for _ in range(trips):
        received = await channel.receive(buffer)
        await channel.send(received)
        received_bytes += received.nbytes
    return {"received_bytes": received_bytes}


async def _ping(end: _End, channel: Any, trips: int) -> Dict[str, Any]:
    sent, arrays = end.sent, device.array_module(end.device)
    buffer = arrays.empty(sent.size, dtype="uint8")
    trips_s: List[float] = []
    received_bytes, wrong_bytes = 0, 0
    for _ in range(trips):
        sent += 1  # wraps; every byte differs from the last trip's, so nothing stale can pass for an echo
        if end.device == "gpu":
            device.synchronize()  # UCX doesn't wait for kernels
        start = time.perf_counter()
        await channel.send(sent)
        received = await channel.receive(buffer)
        trips_s.append(time.perf_counter() - start)
        received_bytes += received.nbytes
        is_whole = received.shape == sent.shape
        wrong_bytes += int(arrays.count_nonzero(received != sent)) if is_whole else sent.size
    return {"received_bytes": received_bytes, "trips_s": trips_s, "wrong_bytes": wrong_bytes}


async def close_end(token: str) -> None:
    """Close this worker's channels and listener, if it has any."""
    end = _ENDS.pop(token, None)
    if end is None:
        return
    for channel in end.channels.values():
        await channel.close()
    if end.listener is not None:
        end.listener.close()
