"""The peers' own commands, and ours on the same data, with the same program, library and settings."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.against_dask_cuda.by_hand import environment
from gpubench.node.workloads.link import is_listening

GPUBENCH, UV = (Path(sys.executable).with_name(name) for name in ("gpubench", "uv"))
CUDF_POLARS = "26.10.2"
PACKAGES = (f"cudf-polars-cu12=={CUDF_POLARS}", "pandas", "pyarrow")
_FINAL = re.compile(r"^Final:\s+(\d+)\s+\S+\s+\S+\s+(\S+)", re.MULTILINE)
_LATENCY = re.compile(r"^Latency \(average\) +\| (\d+) ns$", re.MULTILINE)
_S = 600.0


def run(words: Sequence[str | Path], env: dict[str, str], cwd: Path | None = None) -> str:
    """What the command says; raises AssertionError with its last words if it fails."""
    done = subprocess.run(words, env=env, cwd=cwd, check=False, capture_output=True, text=True, timeout=_S)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return done.stdout


@dataclasses.dataclass
class Link:
    """One test between two processes: gpubench's two workers start them, or two shells do."""

    test: str
    size: int
    iterations: int
    reps: int
    ucx: str
    folder: Path
    _campaign: Path | None = None

    def ours(self) -> float:
        """Mean seconds of all iterations of a repetition; keeps which program, library and settings it used."""
        outputs = tempfile.mkdtemp(dir=self.folder)
        settings = [f"test={self.test}", f"size={self.size}B", f"iterations={self.iterations}"]
        words = ["measure", "link", "--ucx", self.ucx, "--protocol", "ucx", "--workers", "2", "--warmup", "0"]
        asked = ["--json", "--reps", str(self.reps), "--outputs", outputs]
        said = run([GPUBENCH, *words, *asked, *(w for one in settings for w in ("--set", one))], environment())
        self._campaign = next(Path(outputs).glob("*/plan.json")).parent
        return statistics.fmean(float(each) for each in json.loads(said)["wall_s"])

    def theirs(self) -> float:
        """The same by hand: as often, in the environment that our worker had."""
        assert self._campaign, "ours runs first"
        worker = _worker(self._campaign)
        library = Path(worker["ucx"]["path"])
        paths = [str(library.parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        env = {
            **environment(),
            **worker["ucx"]["env"],
            "LD_LIBRARY_PATH": os.pathsep.join(paths),
            "PYTHONUNBUFFERED": "1",
        }
        play = self._send_recv if self.test == "send_recv" else self._perftest
        return statistics.fmean(play(library, env) for _ in range(self.reps))

    def _perftest(self, library: Path, env: dict[str, str]) -> float:
        program = library.parents[1] / "bin" / "ucx_perftest"
        sizes = ["-s", str(self.size), "-n", str(self.iterations), "-w", str(max(1, self.iterations // 10))]
        port = _free_port()
        # It keeps what it prints into a pipe until it ends, so its port is looked at.
        with _running([program, "-p", str(port)], env) as server:
            end = time.monotonic() + _S
            while not is_listening(port):
                assert server.poll() is None, server.communicate()
                assert time.monotonic() < end, f"{program} doesn't listen"
                time.sleep(0.01)
            said = run([program, "127.0.0.1", "-p", str(port), "-t", self.test, *sizes], env)
        found = _FINAL.search(said)
        assert found, said[-2000:]
        return (1 if self.test == "tag_bw" else 2) * int(found[1]) * float(found[2]) / 1e6

    def _send_recv(self, _library: Path, env: dict[str, str]) -> float:
        assert self._campaign
        plan = json.loads((self._campaign / "plan.json").read_text())
        mode = env.get("UCXPY_PROGRESS_MODE", "blocking")
        warm = str(max(1, self.iterations // 10))
        words = [plan["variants"][0]["image"]["python"], "-m", "ucxx.benchmarks.send_recv", "-s", "127.0.0.1"]
        words += ["-n", str(self.size), "--n-iter", str(self.iterations), "--n-warmup-iter", warm, "--reuse-alloc"]
        words += ["--progress-mode", mode, "-p", str(_free_port()), "--no-detailed-report"]
        # Neither side's end is waited for: ucxx 0.45.1 doesn't always end its notifier thread.
        with (
            _printing([*words, "--server-only"], env, "Server Running at"),
            _printing([*words, "--client-only"], env, "Latency (median)") as said,
        ):
            found = _LATENCY.search(said)
        assert found, said[-2000:]
        return 2 * self.iterations * int(found[1]) / 1e9


def _worker(campaign: Path) -> dict[str, Any]:
    provenance = json.loads(next(campaign.glob("runs/*/provenance.json")).read_text())
    return next(dict(one) for one in provenance["processes"] if one["role"] == "worker")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _running(words: Sequence[str | Path], env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process group, which is ended behind the block."""
    with subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _printing(words: Sequence[str | Path], env: dict[str, str], last: str) -> Iterator[str]:
    """What a process group prints up to ``last``; it is ended behind the block."""
    with _running(words, env) as process:
        assert process.stdout is not None
        said, end = b"", time.monotonic() + _S
        while last.encode() not in said.rpartition(b"\n")[0]:
            assert time.monotonic() < end, said[-2000:]
            if select.select([process.stdout], [], [], 1.0)[0]:
                more = os.read(process.stdout.fileno(), 4096)
                assert more, said[-2000:]
                said += more
        yield said.decode()


def install_cudf_polars(cache: Path) -> Path:
    """The Python of an environment with cudf-polars, below ``cache``; made once."""
    home = cache / f"cudf-polars-{CUDF_POLARS}"
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        run([UV, "venv", "--quiet", "--clear", home], dict(os.environ))
        run([UV, "pip", "install", "--quiet", "--python", python, *PACKAGES], dict(os.environ))
        (home / "complete").touch()
    return python


PDSH = str(Path(__file__).parents[2] / "contrib/pdsh/pdsh.py") + ":Pdsh"


@dataclasses.dataclass
class Query:
    """One query on one set of tables: ``gpubench measure`` of it, and cudf-polars' benchmark on a CPU."""

    number: int
    backend: str
    scale: float
    files: int
    reps: int
    ucx: str
    python: Path
    folder: Path

    @property
    def _tables(self) -> Path:
        return self.folder / "tables"

    def ours(self) -> float:
        """Mean seconds of the timed repetitions; the answer is checked. The first call makes the tables."""
        settings = [f"query={self.number}", f"scale={self.scale}", f"files={self.files}", f"directory={self._tables}"]
        where = ["--ucx", self.ucx, "--protocol", "tcp", "--workers", "2"]
        asked = ["--json", "--outputs", str(self.folder), "--reps", str(self.reps), "--warmup", "1"]
        more = [w for one in settings for w in ("--set", one)]
        said = run([GPUBENCH, "measure", PDSH, "--backend", self.backend, *where, *asked, *more], environment())
        return statistics.fmean(float(each) for each in json.loads(said)["wall_s"])

    def theirs(self) -> float:
        """The same tables by polars in one process, as cudf-polars' benchmark runs it where there is no GPU."""
        (tables,) = self._tables.glob("pdsh-*")
        with tempfile.TemporaryDirectory() as folder:
            words: list[str | Path] = [
                self.python,
                "-m",
                "cudf_polars.streaming.benchmarks.pdsh",
                str(self.number),
            ]
            words += ["--frontend", "polars-cpu", "--path", tables, "--suffix", "", "--scale", str(self.scale)]
            run([*words, "--iterations", str(1 + self.reps), "-o", "out.jsonl"], environment(), Path(folder))
            found = json.loads((Path(folder) / "out.jsonl").read_text())["records"][str(self.number)]
        assert all(one["status"] == "success" for one in found), found
        return statistics.fmean(one["duration"] for one in found[1:])
