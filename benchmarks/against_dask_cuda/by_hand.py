"""A plain Dask cluster, and dask-cuda's scripts started on it by hand."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path


def environment() -> dict[str, str]:
    """The shell's without ``PYTHON*``, and threads bounded as our workers' are."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclasses.dataclass(frozen=True)
class Cluster:
    """A plain Dask cluster of ``workers`` workers with one thread each, and the Python that runs it."""

    python: Path
    directory: Path
    workers: int

    @property
    def file(self) -> Path:
        """The scheduler file."""
        return self.directory / "scheduler.json"

    def run(self, module: str, words: Sequence[str], reps: int) -> list[float]:
        """Seconds of every timed repetition of ``dask_cuda.benchmarks.MODULE``, after one that doesn't count."""
        with tempfile.TemporaryDirectory() as folder:
            command = [str(self.python), "-m", f"dask_cuda.benchmarks.{module}", "--scheduler-file", str(self.file)]
            shared = [
                "-p",
                "tcp",
                "--type",
                "cpu",
                "--runs",
                str(reps),
                "--warmup-runs",
                "1",
                "--output-basename",
                f"{folder}/out",
            ]
            _run([*command, *shared, *words], {**environment(), "EXPECTED_NUM_WORKERS": str(self.workers)})
            found = json.loads((Path(folder) / "out.json").read_text())
        return [float(each) for each in found["wallclock"].values()]


@contextlib.contextmanager
def cluster(python: Path, workers: int, directory: Path) -> Iterator[Cluster]:
    """One over TCP on the loopback."""
    found = Cluster(python, directory, workers)
    common = ["--protocol", "tcp", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(found.file)]
    scheduler = [str(python), "-m", "dask", "scheduler", *common, "--port", "0"]
    worker = [str(python), "-m", "dask", "worker", *common, "--nthreads", "1", "--no-nanny"]
    running = [_start(words, directory) for words in [scheduler, *[worker] * workers]]
    try:
        while not found.file.exists():
            time.sleep(0.05)
        yield found
    finally:
        for process in reversed(running):
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask, then see to it: a worker may wait for longer than its scheduler lives."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _start(words: Sequence[str], directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        words, env=environment(), cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _run(words: Sequence[str], env: Mapping[str, str]) -> str:
    """What the command says; raises AssertionError with its last words if it fails."""
    done = subprocess.run(words, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
