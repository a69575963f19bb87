"""The UCX under test without Dask and without Python: ``ucx_perftest`` between pairs of workers.

Beside ``message`` (the binding) and the workloads of Dask it tells where a difference comes from: a link that is as
fast as before under a slower ``message`` speaks for the binding, a slower link for UCX itself.

The workers' side, a process of ``ucx_perftest`` on each, are functions that ``client.run`` starts in the event loop of
each worker. A worker's server lives in this module, by the token of the measurement that started it. The processes have
the worker's environment, and so its ``UCX_*``.

https://github.com/openucx/ucx/blob/master/src/tools/perf/perftest.c prints the numbers that ``figures`` reads.
"""

import asyncio
import contextlib
import os
import re
import signal
import socket
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from distributed.comm.addressing import get_address_host

from gpubench.workloads.base import Answer, Measurement, UnavailableError, WorkloadContext
from gpubench.workloads.links import Link
from gpubench.workloads.message import chosen_pairs

PROGRAM = "ucx_perftest"
LISTEN_S = 20.0
END_S = 20.0
_TICK_S = 0.01
_SERVERS: Dict[str, Any] = {}
_FINAL = re.compile(r"^Final:((?:\s+\d+(?:\.\d+)?){8})\s*$", re.MULTILINE)
"""Iterations; µs: 50th percentile, average, overall; MB/s: average, overall; messages/s: average, overall."""


def libraries(pid: str) -> Set[str]:
    """Files of libucp that a process has mapped."""
    maps = Path("/proc", pid, "maps").read_text(encoding="utf-8", errors="replace")
    return {"/" + line.partition("/")[2] for line in maps.splitlines() if "/libucp.so" in line}


def program() -> Dict[str, str]:
    """``library``: the libucp in this process; ``program``: its ``ucx_perftest``, empty where it came without one.

    It is looked for in the ``bin`` of the three folders above the library: ``PREFIX/bin`` for ``PREFIX/lib/libucp.so``,
    and ``/usr/bin`` for ``/usr/lib/x86_64-linux-gnu/libucp.so``.
    """
    library = next(iter(sorted(libraries("self"))), "")
    found = [parent / "bin" / PROGRAM for parent in [*Path(library).parents][:3]] if library else []
    return {"library": library, "program": next((str(path) for path in found if os.access(path, os.X_OK)), "")}


def figures(text: str) -> Dict[str, float]:
    """``iterations``, and ``overall_s`` and ``median_s`` per iteration, of what a client printed.

    A latency test counts one way, half of a round trip, as an iteration's latency.

    Raises:
        ValueError: there is no line of final figures.
    """
    found = _FINAL.search(text)
    if found is None:
        raise ValueError(f"{PROGRAM} printed no final figures")
    numbers = [float(word) for word in found[1].split()]
    return {"iterations": numbers[0], "median_s": numbers[1] / 1e6, "overall_s": numbers[3] / 1e6}


async def serve(token: str) -> Dict[str, Any]:
    """Start a server, wait until it listens; its ``port``, or the ``error`` that ended it."""
    process, port = await _listening()
    if process.returncode is not None:
        return {"error": await _last_words(process)}
    _SERVERS[token] = process
    return {"port": port}


async def play(host: str, port: int, words: Sequence[str]) -> Dict[str, Any]:
    """Run a client with these words; its ``figures``, or the ``error`` that ended it."""
    process = await _start([host, "-p", str(port), *words])
    output = (await process.communicate())[0].decode("utf-8", "replace")
    if process.returncode == 0:
        with contextlib.suppress(ValueError):
            return figures(output)
    return {"error": _said(process.returncode, output)}


async def finish(token: str) -> Dict[str, Any]:
    """Wait for the server's end, which its client brings about; ``error`` where it failed."""
    process = _SERVERS.pop(token)
    try:
        await asyncio.wait_for(process.wait(), END_S)
    except asyncio.TimeoutError:
        await _end(process)
        return {"error": f"the server of {PROGRAM} didn't end within {END_S:g} s of its client"}
    return {} if process.returncode == 0 else {"error": await _last_words(process)}


async def close(token: str) -> None:
    """End this worker's server, if it has one."""
    process = _SERVERS.pop(token, None)
    if process is not None:
        await _end(process)


async def self_test(words: Sequence[str]) -> Dict[str, Any]:
    """A server and a client here, one with the other: ``library`` that both mapped, or the ``error`` that ended them.

    Wheels of libucx 1.17.0.post1 to 1.18.1 hold a ``ucx_perftest`` that ends by SIGSEGV.
    """
    own = program()
    if not own["program"]:
        return {"error": f"{own['library'] or 'no UCX is loaded, so there'} has no {PROGRAM} beside it"}
    server, port = await _listening()
    if server.returncode is not None:
        return {"error": await _last_words(server)}
    mapped = libraries(str(server.pid))
    played = await play("127.0.0.1", port, words)
    await _end(server)
    if "error" in played:
        return played
    if mapped != {own["library"]}:
        return {"error": f"{PROGRAM} loaded {', '.join(sorted(mapped))}, the worker {own['library']}"}
    return {"library": own["library"]}


async def _start(words: Sequence[str]) -> Any:
    own = program()
    return await asyncio.create_subprocess_exec(
        *(own["program"], *words),
        env=_environment(own["library"], os.environ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


def _environment(library: str, inherited: Mapping[str, str]) -> Dict[str, str]:
    """The worker's own, in which the program finds the worker's library: that of a wheel has no path of its own."""
    paths = [str(Path(library).parent), *filter(None, [inherited.get("LD_LIBRARY_PATH")])]
    return {**inherited, "LD_LIBRARY_PATH": os.pathsep.join(paths)}


async def _listening() -> Any:
    """A server, and its port, once it listens there or has ended.

    Raises:
        RuntimeError: it does neither.
    """
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    process = await _start(["-p", str(port)])
    loop = asyncio.get_running_loop()
    end = loop.time() + LISTEN_S
    while process.returncode is None and not _is_listening(port):
        if loop.time() > end:
            await _end(process)
            raise RuntimeError(f"{PROGRAM} didn't listen within {LISTEN_S:g} s")
        await asyncio.sleep(_TICK_S)
    return process, port


def _is_listening(port: int) -> bool:
    """Whether anybody on this node listens there, over IPv4 or IPv6 (proc(5), ``/proc/net/tcp``; state 0A)."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path("/proc/self/net", name).read_text(encoding="ascii").splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and words[1].endswith(f":{port:04X}"):
                    return True
    return False


async def _end(process: Any) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def _last_words(process: Any) -> str:
    return _said(process.returncode, (await process.communicate())[0].decode("utf-8", "replace"))


def _said(code: Optional[int], output: str) -> str:
    how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
    lines: List[str] = [line.strip() for line in output.splitlines() if line.strip() and line.strip(" +-|")]
    return f"{PROGRAM} ended with {how}: {lines[-1] if lines else 'it printed nothing'}"


ROUND_TRIPS = ("tag_lat", "ucp_am_lat")
"""Tests whose iteration is a message there and back; the program calls half of its time the latency."""


class LinkTest(Measurement):
    """Pair after pair: the first worker's process is the client, the second's the server."""

    uses_transfer_log = False

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
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
        for address, found in self.context.client.run(self_test, self._words(iterations=10)).items():
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
        serving = run(serve, self._token, workers=[server])[server]
        if "error" not in serving:
            words = self._words(int(self.params["iterations"]))
            played: Dict[str, Any] = run(play, self._hosts[server], serving["port"], words, workers=[client])[client]
            ended = run(finish, self._token, workers=[server])[server]
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
        self.context.client.run(close, self._token)
