"""Ping-pong between pairs of workers, through the communication library that Dask uses."""

import itertools
import uuid
from typing import Any, Dict, List, Sequence, Tuple

from distributed.comm.addressing import get_address_host

from gpubench.workloads import pingpong
from gpubench.workloads.base import Answer, Measurement, WorkloadContext
from gpubench.workloads.links import Link


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
        return sorted({(min(one, other), max(one, other)) for one in workers for other in [(one + 1) % len(hosts)]})
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
        self._token = uuid.uuid4().hex
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
    def moved_bytes_own(self) -> int:
        """What the last repetition's receivers counted, as far as the two sides were different processes."""
        return sum(int(link["bytes"]) for link in self._links)

    @property
    def links_own(self) -> List[Link]:
        """Both directions of each pair, with the same round trips."""
        return self._links

    def setup(self) -> None:
        """Listen everywhere, then connect every pair.

        Raises:
            ValueError: fewer than two workers.
        """
        if not self.pairs:
            raise ValueError("message needs at least two workers")
        context = self.context
        names = (self._token, context.binding, self._hosts)
        size = int(self.params["size"])
        ports = context.client.run(pingpong.open_end, *names, kind=context.device, size=size, seed=context.seed)
        context.client.run(pingpong.connect_end, *names, ports, self.pairs)

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
        played = self.context.client.run(pingpong.play, self._token, *pair, trips, workers=addresses)
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
        return Answer("ok" if is_ok else "wrong", details)

    def teardown(self) -> None:
        """Close all channels."""
        self.context.client.run(pingpong.close_end, self._token)
