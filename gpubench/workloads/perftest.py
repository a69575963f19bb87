"""The workers' side of ``link``: ``ucx_perftest`` of the UCX that the worker has loaded, a process on each side.

Functions that ``client.run`` starts in the event loop of each worker. A worker's server lives in this module, by the
token of the measurement that started it. The processes have the worker's environment, and so its ``UCX_*``.

https://github.com/openucx/ucx/blob/master/src/tools/perf/perftest.c prints the numbers that ``figures`` reads.
"""

import asyncio
import contextlib
import os
import re
import signal
import socket
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set

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
