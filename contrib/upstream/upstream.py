"""dask-cuda's own benchmarks, unchanged, on our cluster: the bridge from a user's old numbers to ours.

Each repetition is one start of ``dask_cuda.benchmarks.NAME`` with one timed run, as a process of its own that joins the
cluster as a client, with the run's secret (``node/admission``); the sample is the seconds that its JSON file says. What
it times, generates and leaves out of the clock is its own affair, and so is the answer, which it doesn't check.

https://github.com/rapidsai/dask-cuda/tree/main/dask_cuda/benchmarks
"""

import importlib.metadata
import importlib.util
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from gpubench.node.workloads import device, process_reaper
from gpubench.node.workloads.base import Answer, Measurement, UnavailableError

OURS = {
    "--scheduler-address": "the cluster is ours",
    "--scheduler-file": "the cluster is ours",
    "--shutdown-external-cluster-on-exit": "the cluster is ours",
    "--multi-node": "the cluster is ours",
    "--hosts": "the cluster is ours",
    "--protocol": "the plan's protocol is used",
    "-p": "the plan's protocol is used",
    "--type": "the plan's device is used",
    "-t": "the plan's device is used",
    "--runs": "say reps",
    "--warmup-runs": "say warmup",
    "--output-basename": "results come into the run record",
    "--profile": "it would be timed",
}
"""Options that can't be given, each with its reason."""
MARK = "GPUBENCH_UPSTREAM"
BASENAME = "result"
SPARE = ("EXPECTED_NUM_WORKERS",)
"""It would wait 5 s before it counts workers that we have counted."""
ADMITTED = """
import runpy, sys
sys.path.append(sys.argv.pop(1))
from gpubench.node.admission import close_to_others
close_to_others()
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
"""``python -m MODULE`` of a process that our cluster lets in: arguments NODE-HALF MODULE [ARGUMENT...]."""


class UpstreamError(Exception):
    """The benchmark ended without a result; the message is its own last word."""


class Upstream(Measurement):
    """One of ``dask_cuda.benchmarks``, seen from outside."""

    plan = {
        "params": {
            "benchmark": {
                "kind": "choice",
                "default": "local_cudf_merge",
                "choices": [
                    "local_cudf_merge",
                    "local_cudf_shuffle",
                    "local_cudf_groupby",
                    "local_cupy",
                    "local_cupy_map_overlap",
                    "read_parquet",
                ],
                "text": "module of dask_cuda.benchmarks",
            },
            "options": {
                "kind": "name",
                "default": "",
                "text": "its own options, as typed in a shell: `-c 1000000 --frac-match 0.6`",
            },
        },
        "backends": {"dask": ["dask_cuda"]},
        "source": "dask_cuda.benchmarks",
        "timed": "what the benchmark times, by its own clock; one run per repetition, each in a process of its own",
        "counted": "what the benchmark says that it has processed",
        "oracle": "none of its own: answers are `unchecked`; its workers must be ours, its seconds within its process'",
    }

    def __init__(self, context: Any, params: Any) -> None:
        super().__init__(context, params)
        self._mark = uuid.uuid4().hex
        self._bytes = 0
        self._guard: Optional[subprocess.Popen[bytes]] = None
        self._version = ""
        self._folder = ""

    @property
    def nominal_bytes(self) -> int:
        """What the benchmark says that it has processed."""
        return self._bytes

    @property
    def has_cost(self) -> bool:
        """No: it starts a process, which imports and generates."""
        return False

    @property
    def figures(self) -> Dict[str, Any]:
        """Whose benchmark it was."""
        return {"dask_cuda": self._version}

    def setup(self) -> None:
        """Look at the options, and have somebody end what is left of a benchmark if this process dies.

        Raises:
            ValueError: an option is ours.
            UnavailableError: the image lacks the back-end that the options name.
        """
        if reason := fault(self.params["options"]):
            raise ValueError(reason)
        if "rapidsmpf" in self.params["options"] and (lack := lack_of_rapidsmpf()):
            raise UnavailableError(f"{self.params['benchmark']} with rapidsmpf: {lack}")
        if self.context.device == "gpu":
            # It makes a pool of its own in our workers (benchmarks/utils.py:547@v25.08.00), by RMM's default size.
            self.context.client.run(device.keep_memory_resource)
        self._version = importlib.metadata.version("dask-cuda")
        self._guard = process_reaper.guard(MARK, self._mark)

    def prepare(self) -> None:
        """An empty directory to work in: nothing beside it can be imported, and its files have the names asked for."""
        self._clear()
        self._folder = tempfile.mkdtemp(prefix="gpubench-upstream-")

    def once(self) -> Tuple[float, Dict[str, Any]]:
        """Run it; the seconds that it says, and all that it says.

        Raises:
            UpstreamError: it failed, or left no result.
        """
        began = time.perf_counter()
        done = subprocess.run(
            self.words(),
            env={**{name: value for name, value in os.environ.items() if name not in SPARE}, MARK: self._mark},
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        around_s = time.perf_counter() - began
        said = done.stdout.decode("utf-8", "replace").strip().splitlines()
        if done.returncode != 0:
            raise UpstreamError(f"{self.params['benchmark']}: exit code {done.returncode}: {(said or ['no word'])[-1]}")
        found = read(Path(self._folder), around_s)
        self._bytes = found["bytes"]
        return float(found["wall_s"]), found

    def check(self, answer: Dict[str, Any]) -> Answer:
        """Its workers must have been ours, and its time within ours; the benchmark itself checks no answer."""
        details = {
            "workers": len(answer["workers"]),
            "expected_workers": len(self.context.workers),
            "wall_s": answer["wall_s"],
            "process_s": answer["process_s"],
        }
        is_ours = sorted(answer["workers"]) == sorted(self.context.workers)
        is_time = math.isfinite(answer["wall_s"]) and 0 < answer["wall_s"] <= answer["process_s"]
        return Answer("unchecked" if is_ours and is_time and answer["runs"] == 1 else "wrong", details)

    def teardown(self) -> None:
        """End what is left of it, and remove its files."""
        if self._guard is not None:
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            self._guard.wait()
            self._guard = None
            if self.context.device == "gpu":
                self.context.client.run(device.restore_memory_resource)
        self._clear()

    def words(self) -> List[str]:
        """The command: the user's options, and ours, which ``setup`` refuses among the user's."""
        return [
            *(sys.executable, "-c", ADMITTED, process_reaper.HOME),
            f"dask_cuda.benchmarks.{self.params['benchmark']}",
            *("--scheduler-address", self.context.client.scheduler.address),
            *("--protocol", "tcp" if self.context.binding == "tcp" else "ucx"),
            *("--type", self.context.device, "--runs", "1", "--warmup-runs", "0", "--output-basename", BASENAME),
            *shlex.split(self.params["options"]),
        ]

    def _clear(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def fault(options: str) -> str:
    """What is wrong with options of the user's, in words; empty where nothing is."""
    try:
        words = shlex.split(options)
    except ValueError as error:
        return f"options: {error}"
    names = [word.partition("=")[0] for word in words]
    return next((f"options can't have {name}: {OURS[name]}" for name in names if name in OURS), "")


def lack_of_rapidsmpf() -> str:
    """Why dask-cuda's benchmarks can't shuffle by rapidsmpf here; empty where they can.

    They import ``rapidsmpf.integrations.dask``, which rapidsmpf 26.10 has no more. Looked for without importing it.
    """
    found = importlib.util.find_spec("rapidsmpf")
    if found is None:
        return "this image has no rapidsmpf"
    folders = [Path(folder, "integrations") for folder in found.submodule_search_locations or ()]
    return "" if any([*folder.glob("dask*")] for folder in folders) else "the image's rapidsmpf has no part for Dask"


def read(folder: Path, process_s: float) -> Dict[str, Any]:
    """What the files say: ``wall_s`` and ``bytes`` of the first run, how many ``runs``, the ``workers``' addresses.

    Raises:
        UpstreamError: there are none, or they aren't what dask-cuda writes.
    """
    try:
        table = json.loads((folder / f"{BASENAME}.json").read_text(encoding="utf-8"))
        workers = json.loads((folder / f"{BASENAME}.address_map.json").read_text(encoding="utf-8"))
        seconds = list(table["wallclock"].values())
        return {
            "wall_s": float(seconds[0]),
            "bytes": int(next(iter(table["data_processed"].values()))),
            "runs": len(seconds),
            "workers": list(workers),
            "process_s": process_s,
        }
    except (OSError, ValueError, KeyError, IndexError, StopIteration, TypeError, AttributeError) as error:
        raise UpstreamError(f"no result that can be read: {type(error).__name__}: {error}") from None
