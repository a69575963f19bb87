"""The UCX under test without Dask and without Python: ``ucx_perftest`` between pairs of workers.

Beside ``message`` (the binding) and the workloads of Dask it tells where a difference comes from: a link that is as
fast as before under a slower ``message`` speaks for the binding, a slower link for UCX itself.
"""

import uuid
from typing import Any, Dict, List, Tuple

from distributed.comm.addressing import get_address_host

from gpubench.workloads import perftest
from gpubench.workloads.base import Answer, Measurement, UnavailableError, WorkloadContext
from gpubench.workloads.links import Link
from gpubench.workloads.message import chosen_pairs

ROUND_TRIPS = ("tag_lat", "ucp_am_lat")
"""Tests whose iteration is a message there and back; the program calls half of its time the latency."""


class LinkTest(Measurement):
    """Pair after pair: the first worker's process is the client, the second's the server."""

    uses_transfer_log = False

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._token = uuid.uuid4().hex
        self._played: List[Dict[str, Any]] = []
        self._library = ""
        hosts = [get_address_host(address) for address in context.workers]
        self._hosts = dict(zip(context.workers, hosts))
        chosen = chosen_pairs(str(params["pairs"]), hosts) if len(hosts) > 1 else []
        self.pairs = [(context.workers[first], context.workers[second]) for first, second in chosen]
        self._ways = 2 if params["test"] in ROUND_TRIPS else 1

    @property
    def nominal_bytes(self) -> int:
        """Of all iterations of all pairs, there and back where the test is one of round trips."""
        return self._ways * int(self.params["size"]) * int(self.params["iterations"]) * len(self.pairs)

    @property
    def has_cost(self) -> bool:
        """No: the program is a process of its own."""
        return False

    @property
    def least_moved_bytes(self) -> int:
        """Everything: the two sides of a pair are processes of their own."""
        return self.nominal_bytes

    @property
    def moved_bytes_own(self) -> int:
        """Of the iterations that the program says it has completed."""
        return sum(int(link["bytes"]) for link in self.links_own)

    @property
    def links_own(self) -> List[Link]:
        """Both directions of each pair that played round trips; of a one-way test what the client sent."""
        size = int(self.params["size"])
        return [
            {
                "receiver": receiver,
                "sender": sender,
                "bytes": size * int(played["iterations"]),
                "count": int(played["iterations"]),
                "seconds": played["overall_s"] * played["iterations"],
                **({"trips_s": [2 * played["overall_s"]]} if self._ways == 2 else {}),
            }
            for pair, played in zip(self.pairs, self._played)
            for receiver, sender in ((pair[::-1], pair) if self._ways == 2 else (pair[::-1],))
        ]

    @property
    def figures(self) -> Dict[str, Any]:
        """The library that the program loaded."""
        return {"libucp": self._library}

    def setup(self) -> None:
        """Play on every worker with itself.

        Raises:
            UnavailableError: UCX isn't loaded, has no ``ucx_perftest``, or one that doesn't run.
            ValueError: fewer than two workers.
        """
        if not self.pairs:
            raise ValueError("link needs at least two workers")
        for address, found in self.context.client.run(perftest.self_test, self._words(iterations=10)).items():
            if "error" in found:
                raise UnavailableError(f"link runs the image's own ucx_perftest; on {address}: {found['error']}")
            self._library = found["library"]

    def prepare(self) -> None:
        """Nothing: every repetition starts new processes."""

    def once(self) -> Tuple[float, List[Dict[str, Any]]]:
        """Every pair in turn; the seconds of their iterations, by the program's own clock, behind its own warm-up.

        Raises:
            RuntimeError: one side of a pair failed.
        """
        self._played = [self._play(*pair) for pair in self.pairs]
        return sum(self._ways * each["overall_s"] * each["iterations"] for each in self._played), self._played

    def _play(self, client: str, server: str) -> Dict[str, Any]:
        run = self.context.client.run
        serving = run(perftest.serve, self._token, workers=[server])[server]
        if "error" not in serving:
            words = self._words(int(self.params["iterations"]))
            played: Dict[str, Any] = run(perftest.play, self._hosts[server], serving["port"], words, workers=[client])[
                client
            ]
            ended = run(perftest.finish, self._token, workers=[server])[server]
            serving = ended if "error" not in played else played
        if "error" in serving:
            raise RuntimeError(f"between {client} and {server}: {serving['error']}")
        return played

    def _words(self, iterations: int) -> List[str]:
        memory = "cuda" if self.context.device == "gpu" else "host"
        return [
            *("-t", str(self.params["test"]), "-s", str(self.params["size"]), "-m", memory),
            *("-n", str(iterations), "-w", str(max(1, iterations // 10))),
        ]

    def check(self, answer: List[Dict[str, Any]]) -> Answer:
        """Every pair completed all iterations, in a time that is one; nobody looks at the bytes themselves."""
        wanted = int(self.params["iterations"])
        details = {
            "pairs": len(answer),
            "iterations": sum(int(played["iterations"]) for played in answer),
            "expected_iterations": wanted * len(self.pairs),
            "slowest_pair_s": max(played["overall_s"] for played in answer),
        }
        is_whole = all(played["iterations"] == wanted and played["overall_s"] > 0 for played in answer)
        return Answer("unchecked" if is_whole and len(answer) == len(self.pairs) else "wrong", details)

    def teardown(self) -> None:
        """End servers that wait for a client that never came."""
        self.context.client.run(perftest.close, self._token)
