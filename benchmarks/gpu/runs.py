"""Runs of the node half on this machine's first GPU, as a campaign on site local-gpu would start them."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import re
import subprocess
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubench.node.spec import Deadlines, RunSpec, WorkloadSpec
from gpubench.node.spec.run import RUN_SPEC
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.node.workloads.catalogue.own import HASH

LONGEST_S = 100.0
TOKEN = "gpubench-benchmarks-gpu"


def workload(name: str, reps: int = 3, **params: Any) -> WorkloadSpec:
    """With the catalogue's defaults for what isn't given, and a warm-up."""
    complete = {key: params.pop(key, known.default) for key, known in CATALOGUE[name].params.items()}
    assert not params, params
    return WorkloadSpec(name, "dask", complete, reps=reps, warmup=1, timeout_s=LONGEST_S)


@dataclasses.dataclass
class Ended:
    """A run that has ended: its record, provenance and samples (by workload: seconds), and how long it took in all."""

    record: Mapping[str, Any]
    provenance: Mapping[str, Any]
    samples: Mapping[str, list[float]]
    took_s: float
    said: str

    @property
    def workers(self) -> list[Mapping[str, Any]]:
        """What they said of themselves at the start."""
        return [process for process in self.provenance.get("processes", []) if process["role"] == "worker"]

    @property
    def outcome(self) -> str:
        """Status, and the reasons of whatever isn't ok."""
        reasons = [self.record["reason"], *(f"{one['workload']}: {one['reason']}" for one in self.record["workloads"])]
        whole = [reason for reason in reasons if reason and not reason.endswith(": ")]
        return f"{self.record['status']} {'; '.join(dict.fromkeys(whole))}".strip()


class Bench:
    """One folder of runs.

    Args:
        folder: gets a folder per run.
        python: of the stack.
        node_half: ``node.pyz``.
        ucx: the version that the stack's UCX reports.
        gigabytes: memory of the GPU.
    """

    def __init__(self, folder: Path, python: str, node_half: bytes, ucx: str, gigabytes: float) -> None:
        self.folder = folder.resolve()
        self.python = python
        self.gigabytes = gigabytes
        self._half, self._ucx = node_half, ucx
        self._scratch = self.folder / "scratch"
        self._scratch.mkdir(parents=True, exist_ok=True)

    def upstream(self, options: str) -> WorkloadSpec:
        """dask-cuda's own ``local_cupy``, from contrib."""
        with zipfile.ZipFile(io.BytesIO(self._half)) as archive:
            digits = next(
                found[1] for path in archive.namelist() if (found := re.search(r"/own_([0-9a-f]{16})/", path))
            )
        params = {"benchmark": "local_cupy", "options": options, HASH: digits}
        return WorkloadSpec("upstream.py:Upstream", "dask", params, reps=1, warmup=0, timeout_s=LONGEST_S)

    def run(
        self, name: str, *workloads: WorkloadSpec, variables: Mapping[str, str] | None = None, **changes: Any
    ) -> Ended:
        """Start a run, wait for its end, read what it left. ``variables`` are further ones of its supervisors."""
        directory = self.folder / name
        directory.mkdir(parents=True)
        (directory / "node.pyz").write_bytes(self._half)
        spec = self._spec(name, directory, list(workloads), changes)
        path = directory / "jobs" / spec.job / "specs" / f"001-0-{spec.run}.json"
        path.parent.mkdir(parents=True)
        path.write_text(spec.dump())
        more = {"GPUBENCH_JOB_TOKEN": TOKEN, "SCRATCHDIR": str(self._scratch)}
        env = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
        began = time.monotonic()
        words = [self.python, str(directory / "node.pyz"), "run", "--spec", str(path), "--rank"]
        processes = [
            subprocess.Popen(
                [*words, str(rank)],
                env={**env, **more, **(variables or {})},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(spec.nodes)
        ]
        said = ""
        for process in processes:
            try:
                said += process.communicate(timeout=LONGEST_S + 60)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                said += process.communicate()[0] + "\nkilled by its time limit"
        return self._ended(directory / "runs" / f"{spec.run}-1", time.monotonic() - began, said)

    def _spec(self, name: str, directory: Path, workloads: list[WorkloadSpec], changes: dict[str, Any]) -> RunSpec:
        logs = directory / "ucx"
        logs.mkdir()
        tls = changes.pop("tls", "tcp,cuda_copy,cuda_ipc")
        env = {"UCX_TLS": tls, "UCX_LOG_FILE": f"{logs}/%p.log", **changes.pop("env", {})}
        passed = [key for key in ("PYTHONPATH", "LD_LIBRARY_PATH") if key in os.environ]
        base = RunSpec(
            schema=RUN_SPEC,
            campaign="gpu",
            site="gpu",
            job="j001-n1",
            block=1,
            run=hashlib.sha256(name.encode()).hexdigest()[:12],
            order=0,
            variant="a",
            image=f"python {self.python}",
            ucx_version=self._ucx,
            binding="ucxx",
            protocol="ucx",
            device="gpu",
            nodes=1,
            workers_per_node=1,
            threads_per_worker=1,
            memory_limit=40 * 2**30,
            interface="lo",
            manifest="",
            env=env,
            env_allow=["PATH", *passed],
            expect_transport=["tcp", "cuda_copy", "cuda_ipc"],
            need_transport={"same_node": ["cuda_ipc"], "between_nodes": []},
            expect_ucx=self._ucx,
            workloads=workloads,
            deadlines=Deadlines(start_s=60.0, stop_s=30.0, silence_s=30.0),
            block_s=600.0,
            node_half=hashlib.sha256(self._half).hexdigest(),
        )
        return dataclasses.replace(base, **changes)

    def _ended(self, run_dir: Path, took_s: float, said: str) -> Ended:
        def plain(name: str) -> dict[str, Any]:
            path = run_dir / name
            return json.loads(path.read_text()) if path.exists() else {}

        record = plain("run.json") or {"status": "no record", "reason": said[-300:], "workloads": [], "warnings": []}
        samples: dict[str, list[float]] = {}
        path = run_dir / "samples.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            sample = json.loads(line)
            if not sample["warmup"]:
                samples.setdefault(sample["workload"], []).append(sample["wall_s"])
        return Ended(record, plain("provenance.json"), samples, took_s, said)
