"""The UCX under test without Dask, between pairs of workers: ``ucx_perftest``, and the binding's own benchmark.

Beside ``message`` and the workloads of Dask it tells where a difference comes from: a link that is as fast as before
under a slower ``message`` speaks for the binding, a slower link for UCX itself. ``send_recv`` is
``ucxx.benchmarks.send_recv``, with the progress mode that the workers' own ucxx has: UCX and the binding without Dask.

The workers' side, a process of the program on each, are functions that ``client.run`` starts in the event loop of
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
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from distributed.comm.addressing import get_address_host

from gpubench.node.workloads import nvml
from gpubench.node.workloads.base import Answer, Measurement, UnavailableError, WorkloadContext
from gpubench.node.workloads.links import Link
from gpubench.node.workloads.message import chosen_pairs
from gpubench.node.workloads.nvml import VISIBLE
from gpubench.node.workloads.ucx import LIBRARY, mapped, program_of

PROGRAM = "ucx_perftest"
SEND_RECV = "send_recv"
MODULE = f"ucxx.benchmarks.{SEND_RECV}"
TRIES = 3
"""Of a pair whose server was taken by somebody else who connected to its port first: ucx_perftest takes one connection.
And of one whose send_recv lost a race at its end: the server closes the connection right behind its last message, and
the client may hear of that before the message (ucxx 0.45.1: 1 of 12 on a busy machine)."""
LISTEN_S = 60.0
END_S = 20.0
_TICK_S = 0.01
_SERVERS: Dict[str, Any] = {}
_FINAL = re.compile(r"^Final:((?:\s+\d+(?:\.\d+)?){8})\s*$", re.MULTILINE)
"""Iterations; µs: 50th percentile, average, overall; MB/s: average, overall; messages/s: average, overall."""
_FIGURE = re.compile(r"^(Iterations|Latency \(average\)|Latency \(median\)) +\| (\d+)(?: ns)?$", re.MULTILINE)
"""Of send_recv: latencies are half of a round trip, in ns."""
_LAST_LINE = "Latency (median)"
_REFUSED = "Connection refused"
_RESET = "UCXXConnectionResetError"


def program() -> Dict[str, str]:
    """``library``: the libucp in this process; ``program``: its ``ucx_perftest``, empty where it came without one."""
    library = next(iter(mapped(LIBRARY)), "")
    return {"library": library, "program": program_of(library, PROGRAM)}


def figures(text: str) -> Dict[str, float]:
    """``iterations``, and ``overall_s`` and ``median_s`` per iteration, of what a client printed.

    A latency test counts one way, half of a round trip, as an iteration's latency.

    Raises:
        ValueError: there is no line of final figures.
    """
    match = _FINAL.search(text)
    if match is None:
        raise ValueError(f"{PROGRAM} printed no final figures")
    numbers = [float(word) for word in match[1].split()]
    return {"iterations": numbers[0], "median_s": numbers[1] / 1e6, "overall_s": numbers[3] / 1e6}


def figures_of_binding(text: str) -> Dict[str, float]:
    """As ``figures``, of what a client of ``send_recv`` printed. Raises ValueError: a figure is missing."""
    # The count stands in the first of two lines of that name.
    summary = {name: float(number) for name, number in reversed(_FIGURE.findall(text))}
    if len(summary) < 3:
        raise ValueError(f"{MODULE} printed no summary")
    average, median = summary["Latency (average)"] / 1e9, summary["Latency (median)"] / 1e9
    return {"iterations": summary["Iterations"], "median_s": median, "overall_s": average}


def progress_mode() -> str:
    """How this process's ucxx makes progress; empty where it doesn't communicate by ucxx."""
    return str(getattr(getattr(sys.modules.get("ucxx.core"), "_ctx", None), "progress_mode", "") or "")


async def serve(token: str, test: str, arguments: Sequence[str]) -> Dict[str, Any]:
    """Start a server, wait until it listens; its ``port``, or the ``error`` that ended it."""
    process, port = await _listening(test, arguments)
    if process.returncode is not None:
        return {"error": await _last_words(test, process)}
    _SERVERS[token] = process
    return {"port": port}


async def play(host: str, port: int, test: str, arguments: Sequence[str]) -> Dict[str, Any]:
    """Run a client with these words; its ``figures``, or the ``error`` that ended it.

    ``again``: that may be for a reason that says nothing of UCX; see ``TRIES``.
    """
    process = await _start(test, _client_words(test, host, port, arguments), is_client=True)
    if test == SEND_RECV:
        # Behind its last line it may hang for ever: ucxx 0.45.1 doesn't always end its notifier thread.
        output = await _figures_or_fault(process)
        await _end(process)
        try:
            return figures_of_binding(output)
        except ValueError as error:
            message = (output.strip().splitlines() or [str(error)])[-1]
            return {"error": f"{MODULE}: {message}", "again": _RESET in message}
    output = (await process.communicate())[0].decode("utf-8", "replace")
    if process.returncode == 0:
        with contextlib.suppress(ValueError):
            return figures(output)
    return {"error": _said(test, process.returncode, output), "again": _REFUSED in output}


async def _figures_or_fault(process: Any) -> str:
    """What a client of send_recv prints, to the last figure or the last line of a traceback; or all."""
    lines: List[str] = []
    has_failed = False
    while True:
        lines.append((await process.stdout.readline()).decode("utf-8", "replace"))
        if not lines[-1] or lines[-1].startswith(_LAST_LINE):
            return "".join(lines)
        if has_failed and not lines[-1].startswith((" ", "Traceback")):
            return "".join(lines)
        has_failed = has_failed or lines[-1].startswith("Traceback")


def _client_words(test: str, host: str, port: int, arguments: Sequence[str]) -> List[str]:
    own = ["--client-only", "-s", host] if test == SEND_RECV else [host, "-t", test]
    return [*own, "-p", str(port), *arguments]


async def finish(token: str, test: str) -> Dict[str, Any]:
    """Wait for the server's end, which its client brings about; ``error`` where it failed.

    The server of ``send_recv`` is ended: its partner had an answer to every message.
    """
    process = _SERVERS.pop(token)
    if test == SEND_RECV and process.returncode is None:
        await _end(process)
        return {}
    try:
        await asyncio.wait_for(process.wait(), END_S)
    except asyncio.TimeoutError:
        await _end(process)
        return {"error": f"the server of {_name(test)} didn't end within {END_S:g} s of its client"}
    return {} if process.returncode == 0 else {"error": await _last_words(test, process)}


async def close(token: str) -> None:
    """End this worker's server, if it has one."""
    process = _SERVERS.pop(token, None)
    if process is not None:
        await _end(process)


async def self_test(test: str, arguments: Sequence[str]) -> Dict[str, Any]:
    """A server and a client here, one with the other: ``library`` that both mapped, or the ``error`` that ended them.

    Wheels of libucx 1.17.0.post1 to 1.18.1 hold a ``ucx_perftest`` that ends by SIGSEGV.
    """
    own = program()
    if test == SEND_RECV:
        if not progress_mode():
            return {"error": "this worker doesn't communicate by ucxx"}
    elif not own["program"]:
        return {"error": f"{own['library'] or 'no UCX is loaded, so there'} has no {PROGRAM} beside it"}
    for _ in range(TRIES):
        server, port = await _listening(test, arguments)
        if server.returncode is not None:
            return {"error": await _last_words(test, server)}
        loaded = {library for pid in _family(server.pid) for library in mapped(LIBRARY, str(pid))}
        played = await play("127.0.0.1", port, test, arguments)
        await _end(server)
        if not played.get("again"):
            break
    if "error" in played:
        return played
    if loaded != {own["library"]}:
        return {"error": f"{_name(test)} loaded {', '.join(sorted(loaded))}, the worker {own['library']}"}
    return {"library": own["library"], "progress_mode": progress_mode() if test == SEND_RECV else ""}


def _name(test: str) -> str:
    return MODULE if test == SEND_RECV else PROGRAM


def shown_gpus(visible: str, *, is_client: bool) -> str:
    """The ``CUDA_VISIBLE_DEVICES`` with which ucx_perftest takes its worker's own GPU, the first of ``visible``.

    Its server takes device 0 of those that it sees, its client device 1, modulo their number
    (src/tools/perf/cuda/cuda_alloc.c:33, src/tools/perf/perftest.c:211 of UCX 1.12 to 1.22). All stay visible, as they
    are to the worker: what a transport can do between GPUs may depend on that. Of instances of MIG a process sees one
    only, the first (NVIDIA's MIG user guide, device enumeration).
    """
    gpus = nvml.named(visible)
    if visible.startswith("MIG-"):
        return gpus[0]
    return ",".join([*gpus[-1:], *gpus[:-1]] if is_client else gpus)


async def _start(test: str, arguments: Sequence[str], *, is_client: bool = False) -> Any:
    own, environment = program(), dict(os.environ)
    command = [own["program"]]
    if test == SEND_RECV:
        command = [sys.executable, "-m", MODULE, "--progress-mode", progress_mode()]
        if "cupy" in arguments:
            # It sets CUDA_VISIBLE_DEVICES anew, to GPU 0 unless it is told this worker's first one.
            gpu = environment.get(VISIBLE, "0").partition(",")[0]
            if not gpu.isdigit():  # argparse's type=int (ucxx/benchmarks/send_recv.py:226@v0.45.01)
                raise UnavailableError(f"{MODULE} takes a GPU by its number only, and this worker has {gpu}")
            command += ["-d", gpu, "-e", gpu]
    elif VISIBLE in environment:
        environment[VISIBLE] = shown_gpus(environment[VISIBLE], is_client=is_client)
    return await asyncio.create_subprocess_exec(
        *(*command, *arguments),
        env=_environment(own["library"], environment),
        cwd="/",  # python -m looks for modules there first
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


def _environment(library: str, inherited: Mapping[str, str]) -> Dict[str, str]:
    """The worker's own, in which the program finds the worker's library: that of a wheel has no path of its own.

    The processes of send_recv print at once, and not at an end that may never come.
    """
    paths = [str(Path(library).parent), *filter(None, [inherited.get("LD_LIBRARY_PATH")])]
    return {**inherited, "LD_LIBRARY_PATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


async def _listening(test: str, arguments: Sequence[str]) -> Any:
    """A server, and its port, once it listens there or has ended. Raises RuntimeError: it does neither."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    # The server of ucx_perftest learns from its client what is measured.
    own = ["--server-only", "-s", "127.0.0.1", "-p", str(port), *arguments] if test == SEND_RECV else ["-p", str(port)]
    process = await _start(test, own)
    loop = asyncio.get_running_loop()
    end = loop.time() + LISTEN_S
    while process.returncode is None and not is_listening(port):
        if loop.time() > end:
            await _end(process)
            raise RuntimeError(f"{_name(test)} didn't listen within {LISTEN_S:g} s")
        await asyncio.sleep(_TICK_S)
    return process, port


def is_listening(port: int) -> bool:
    """Whether anybody on this node listens there, over IPv4 or IPv6 (proc(5), ``/proc/net/tcp``; state 0A)."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path("/proc/self/net", name).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[1].endswith(f":{port:04X}"):
                    return True
    return False


def _family(pid: int) -> List[int]:
    """The process and what it has started: send_recv's sides are children of its processes."""
    children = ""
    with contextlib.suppress(OSError):
        children = Path("/proc", str(pid), "task", str(pid), "children").read_text(encoding="ascii")
    return [pid, *(pid_of_family for child in children.split() for pid_of_family in _family(int(child)))]


async def _end(process: Any) -> None:
    if process.returncode is None:
        for pid in _family(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    await process.wait()


async def _last_words(test: str, process: Any) -> str:
    return _said(test, process.returncode, (await process.communicate())[0].decode("utf-8", "replace"))


def _said(test: str, code: Optional[int], output: str) -> str:
    how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
    lines: List[str] = [line.strip() for line in output.splitlines() if line.strip() and line.strip(" +-|")]
    errors = [line for line in lines if " ERROR " in line]
    return f"{_name(test)} ended with {how}: {[*errors[:1], *lines[-1:], 'it printed nothing'][0]}"


ROUND_TRIPS = ("tag_lat", "ucp_am_lat", SEND_RECV)
"""Tests whose iteration is a message there and back; the programs call half of its time the latency."""


class LinkTest(Measurement):
    """Pair after pair: the first worker's process is the client, the second's the server."""

    uses_transfer_log = by_workers = has_cost = False
    """The program's processes do all of it."""

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._played: List[Dict[str, Any]] = []
        self._about: Dict[str, Any] = {}
        self._test = str(params["test"])
        hosts = [get_address_host(address) for address in context.workers]
        self._hosts = dict(zip(context.workers, hosts))
        chosen = chosen_pairs(str(params["pairs"]), hosts) if len(hosts) > 1 else []
        self.pairs = [(context.workers[first], context.workers[second]) for first, second in chosen]
        self._ways = 2 if self._test in ROUND_TRIPS else 1

    @property
    def nominal_bytes(self) -> int:
        """Of all iterations of all pairs, there and back where the test is one of round trips."""
        return self._ways * int(self.params["size"]) * int(self.params["iterations"]) * len(self.pairs)

    @property
    def least_moved_bytes(self) -> int:
        """Everything: the two sides of a pair are processes of their own."""
        return self.nominal_bytes

    @property
    def links_own(self) -> List[Link]:
        """Of the iterations that the program says it has completed.

        Both directions of each pair that played round trips; of a one-way test what the client sent.
        """
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
        """The library that the program loaded, the progress mode of send_recv, and how many plays were ``repeated``."""
        return self._about

    def setup(self) -> None:
        """Play on every worker with itself.

        Raises:
            UnavailableError: UCX isn't loaded, has no ``ucx_perftest``, or one that doesn't run; or ucxx doesn't.
            ValueError: fewer than two workers.
        """
        if not self.pairs:
            raise ValueError("link needs at least two workers")
        for address, facts in self.context.client.run(self_test, self._test, self._words(iterations=10)).items():
            if "error" in facts:
                raise UnavailableError(f"link runs the image's own {_name(self._test)}; on {address}: {facts['error']}")
            self._about = {"libucp": facts["library"]}
            if facts["progress_mode"]:
                self._about["progress_mode"] = facts["progress_mode"]

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
        run, arguments = self.context.client.run, self._words(int(self.params["iterations"]))
        for _ in range(TRIES):
            serving = run(serve, self._token, self._test, arguments, workers=[server])[server]
            if "error" in serving:
                break
            played: Dict[str, Any] = run(
                play, self._hosts[server], serving["port"], self._test, arguments, workers=[client]
            )[client]
            if "error" not in played:
                serving = run(finish, self._token, self._test, workers=[server])[server]
                break
            serving = played
            run(close, self._token, workers=[server])
            if not played["again"]:
                break
            self._about["repeated"] = self._about.get("repeated", 0) + 1
        if "error" in serving:
            raise RuntimeError(f"between {client} and {server}: {serving['error']}")
        return played

    def _words(self, iterations: int) -> List[str]:
        size, count, warm = str(self.params["size"]), str(iterations), str(max(1, iterations // 10))
        is_gpu = self.context.device == "gpu"
        if self._test == SEND_RECV:
            memory = "cupy" if is_gpu else "numpy"
            own = ["-n", size, "-o", memory, "--n-iter", count, "--n-warmup-iter", warm]
            return [*own, "--reuse-alloc", "--no-detailed-report"]
        return ["-s", size, "-m", "cuda" if is_gpu else "host", "-n", count, "-w", warm]

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
