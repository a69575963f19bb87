"""Ping-pong between pairs of workers, through the communication library that Dask uses.

The workers' side are functions that ``client.run`` starts in the event loop of each worker. A worker's end of all its
channels lives in this module, by the token of the measurement that opened it.
"""

import dataclasses
import itertools
import os
import socket
import time
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
from distributed.comm.addressing import get_address_host

from gpubench.node.workloads import bindings, device
from gpubench.node.workloads.base import Answer, Measurement, WorkloadContext, judged
from gpubench.node.workloads.links import Link

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
    adapter = bindings.ADAPTERS[binding]()
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
    adapter = bindings.ADAPTERS[binding]()
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
        wrong_bytes += differing_bytes(arrays, received, sent)
    return {"received_bytes": received_bytes, "trips_s": trips_s, "wrong_bytes": wrong_bytes}


def differing_bytes(arrays: Any, received: Any, sent: Any) -> int:
    """How many bytes differ; all of them where the sizes do.

    Compared by eight at once, in a quarter of the time, and one by one only where they differ. ``arrays`` is the
    module of both arrays.
    """
    if received.shape != sent.shape:
        return int(sent.size)
    whole = sent.size - sent.size % 8
    if whole and not (received[:whole].view("uint64") != sent[:whole].view("uint64")).any():
        received, sent = received[whole:], sent[whole:]
    return int(arrays.count_nonzero(received != sent))


async def close_end(token: str) -> None:
    """Close this worker's channels and listener, if it has any."""
    end = _ENDS.pop(token, None)
    if end is None:
        return
    for channel in end.channels.values():
        await channel.close()
    if end.listener is not None:
        end.listener.close()


def chosen_pairs(which: str, hosts: Sequence[str]) -> List[Tuple[int, int]]:
    """Pairs of workers that play, the smaller index first, each once.

    Args:
        which: ``all`` of them; ``ring``: each worker with the next one, the last with the first; ``hosts``: the first
            workers of every two hosts, and the first two workers of each host.
        hosts: of each worker.
    """
    workers = range(len(hosts))
    if which == "all":
        return list(itertools.combinations(workers, 2))
    if which == "ring":
        return sorted({(min(pair), max(pair)) for pair in zip(workers, [*workers[1:], 0])})
    by_host: Dict[str, List[int]] = {}
    for worker, host in enumerate(hosts):
        by_host.setdefault(host, []).append(worker)
    between = itertools.combinations([members[0] for members in by_host.values()], 2)
    within = [(members[0], members[1]) for members in by_host.values() if len(members) > 1]
    return sorted([*((min(pair), max(pair)) for pair in between), *within])


class Message(Measurement):
    """Messages of one size, back and forth, between the worker processes' own event loops.

    They bypass Dask's transfer log, so the bytes are counted where they arrive.
    """

    uses_transfer_log = False

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._links: List[Link] = []
        self._hosts = {address: get_address_host(address) for address in context.workers}
        alone = len(context.workers) < 2
        self.pairs = [] if alone else chosen_pairs(str(params["pairs"]), list(self._hosts.values()))

    @property
    def nominal_bytes(self) -> int:
        """There and back, all round trips of all pairs."""
        return 2 * int(self.params["size"]) * int(self.params["round_trips"]) * len(self.pairs)

    @property
    def least_moved_bytes(self) -> int:
        """Everything: both sides of every pair are processes of their own."""
        return self.nominal_bytes

    @property
    def links_own(self) -> List[Link]:
        """Both directions of each pair whose sides are different processes, with the same round trips."""
        return self._links

    def setup(self) -> None:
        """Listen everywhere, then connect every pair. Raises ValueError: fewer than two workers."""
        if not self.pairs:
            raise ValueError("message needs at least two workers")
        context = self.context
        names = (self._token, context.binding, self._hosts)
        size = int(self.params["size"])
        ports = context.client.run(open_end, *names, kind=context.device, size=size, seed=context.seed)
        context.client.run(connect_end, *names, ports, self.pairs)

    def prepare(self) -> None:
        """Nothing: every round trip sends another pattern than the one before."""

    def once(self) -> Tuple[float, List[Dict[str, Any]]]:
        """Every pair in turn. Each round trip is timed by the worker that sends first; seconds are their sum."""
        self._links = []
        sides = [side for pair in self.pairs for side in self._play(pair)]
        return sum(sum(side.get("trips_s", ())) for side in sides), sides

    def _play(self, pair: Tuple[int, int]) -> List[Dict[str, Any]]:
        addresses = [self.context.workers[index] for index in pair]
        trips = int(self.params["round_trips"])
        played = self.context.client.run(play, self._token, *pair, trips, workers=addresses)
        sides: List[Dict[str, Any]] = [played[address] for address in addresses]
        is_other_process = sides[0]["process"] != sides[1]["process"]
        if is_other_process:
            trips_s = sides[0]["trips_s"]
            for receiver, sender, side in zip(addresses, reversed(addresses), sides):
                moved = {"bytes": side["received_bytes"], "count": trips, "seconds": sum(trips_s) / 2}
                self._links.append({"receiver": receiver, "sender": sender, **moved, "trips_s": trips_s})
        return [{**side, "is_other_process": is_other_process} for side in sides]

    def check(self, answer: List[Dict[str, Any]]) -> Answer:
        """Every byte came back as it was sent, both sides received them all, and no side talked to itself."""
        received = sum(side["received_bytes"] for side in answer)
        details = {
            "pairs": len(self.pairs),
            "received_bytes": received,
            "expected_bytes": self.nominal_bytes,
            "wrong_bytes": sum(side.get("wrong_bytes", 0) for side in answer),
            "pairs_in_one_process": sum(not side["is_other_process"] for side in answer) // 2,
        }
        is_ok = received == self.nominal_bytes and not details["wrong_bytes"] and not details["pairs_in_one_process"]
        return judged(is_ok, details)

    def teardown(self) -> None:
        self.context.client.run(close_end, self._token)
