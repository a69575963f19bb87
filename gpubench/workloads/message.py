"""Ping-pong between every pair of workers, through the communication library that Dask uses."""

import itertools
import uuid
from typing import Any, Dict, List, Tuple

from distributed.comm.addressing import get_address_host

from gpubench.workloads import pingpong
from gpubench.workloads.base import Answer, Context, Measurement


class Message(Measurement):
    """Messages of one size, back and forth, between the worker processes' own event loops.

    They bypass Dask's transfer log, so the bytes are counted where they arrive.
    """

    uses_transfer_log = False

    def __init__(self, context: Context, params: Any) -> None:
        super().__init__(context, params)
        self._token = uuid.uuid4().hex
        self._round = 0
        self._moved = 0
        self._hosts = {address: get_address_host(address) for address in context.workers}

    @property
    def pairs(self) -> List[Tuple[int, int]]:
        """Every unordered pair of workers, by their index in ``context.workers``."""
        return list(itertools.combinations(range(len(self.context.workers)), 2))

    @property
    def nominal_bytes(self) -> int:
        """There and back, all round trips of all pairs."""
        return 2 * int(self.params["size"]) * int(self.params["round_trips"]) * len(self.pairs)

    @property
    def least_moved_bytes(self) -> int:
        """Everything."""
        return self.nominal_bytes

    @property
    def moved_bytes_own(self) -> int:
        """What the last repetition's receivers counted, as far as the two sides were different processes."""
        return self._moved

    def setup(self) -> None:
        """Listen everywhere, then connect every pair.

        Raises:
            ValueError: fewer than two workers.
        """
        if not self.pairs:
            raise ValueError("message needs at least two workers")
        context = self.context
        names = (self._token, context.binding, self._hosts)
        ports = context.client.run(pingpong.open_end, *names, kind=context.device, size=int(self.params["size"]))
        context.client.run(pingpong.connect_end, *names, ports)

    def prepare(self) -> None:
        """Another pattern in every repetition."""
        self._round += 1

    def once(self) -> Tuple[float, List[Dict[str, Any]]]:
        """Every pair in turn. Each round trip is timed by the worker that sends first; seconds are their sum."""
        sides = [side for pair in self.pairs for side in self._play(pair)]
        self._moved = sum(side["received_bytes"] for side in sides if side["is_other_process"])
        return sum(side.get("seconds", 0.0) for side in sides), sides

    def _play(self, pair: Tuple[int, int]) -> List[Dict[str, Any]]:
        seed = self.context.seed + self._round
        addresses = [self.context.workers[index] for index in pair]
        played = self.context.client.run(
            pingpong.play, self._token, *pair, seed, int(self.params["round_trips"]), workers=addresses
        )
        sides: List[Dict[str, Any]] = [played[address] for address in addresses]
        is_other_process = sides[0]["process"] != sides[1]["process"]
        return [{**side, "is_other_process": is_other_process} for side in sides]

    def check(self, answer: List[Dict[str, Any]]) -> Answer:
        """Every byte came back as it was sent, both sides received them all, and no side talked to itself."""
        received = sum(side["received_bytes"] for side in answer)
        details = {
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
