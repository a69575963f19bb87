"""What a run has on one node: its scratch directory, its processes, its cleanliness."""

import contextlib
import json
import os
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Set

from gpubench.node import forked, gpu, scratch
from gpubench.node.admission import VARIABLE
from gpubench.node.dask_processes import ADDRESS_IN_FILE
from gpubench.node.machine import LoadSampler, facts
from gpubench.node.process import MOST_WORDS, Child, Planned, command, role_words, stop_all
from gpubench.node.spec import RunSpec
from gpubench.node.spec.run import LAUNCH_NODE
from gpubench.node.variables import kernel_caches, process_environment
from gpubench.node.workloads import nvml
from gpubench.node.workloads.clock import poll_until
from gpubench.node.workloads.nvml import VISIBLE
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE, await_cleaners, end_marked, marked
from gpubench.node.writer.atomic import write_atomic

GRACE_S = 0.2
"""Time to end before SIGKILL. Of six runs with a longer one, one took 0.3 s, two 1.4 s, and three more than 10 s.
Everything is measured by then, the kernel frees what processes hold, and their files are removed here."""
CLEAN_POLL_S = 0.1
SCHEDULER_FILE = "scheduler.json"
NODE_HALF = b"node.pyz"
SHM = Path("/dev/shm")  # noqa: S108 - the place itself is meant
SHM_PATTERNS = ("ucx_shm_*", "psm_*gpubench*")


def supervisor_of(pid: int) -> int:
    """The living supervisor above a process; 0 where there is none."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        while pid > 1:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            pid = int(stat.rpartition(")")[2].split()[1])
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if (
                any(word.endswith(b"/" + NODE_HALF) or word == NODE_HALF for word in arguments[:4])
                and b"--parent" not in arguments
            ):
                return pid
    return 0


def maps_anywhere(files: Sequence[str]) -> Set[str]:
    """Those of ``files`` that a process on this node has in its memory."""
    used: Set[str] = set()
    for entry in Path("/proc").glob("[0-9]*/maps") if files else ():
        with contextlib.suppress(OSError):
            text = entry.read_text(encoding="utf-8", errors="replace")
            used.update(name for name in files if name in text)
    return used


def unused_segments() -> List[Path]:
    """Shared-memory segments of this user that UCX left behind: no living process maps them."""
    segments = []
    for pattern in SHM_PATTERNS:
        for path in SHM.glob(pattern):
            with contextlib.suppress(OSError):
                if path.stat().st_uid == os.getuid():
                    segments.append(path)
    used = maps_anywhere([str(path) for path in segments])
    return [path for path in segments if str(path) not in used]


def _answers(address: str) -> bool:
    """Whether something accepts a TCP connection at ``ucxx://127.0.0.1:8786``."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1.0):
            return True
    except OSError:
        return False


class NotCleanError(Exception):
    """Processes of an earlier run of this campaign are on this node and can't be ended."""


class RunNode:
    """Starts, watches and ends the processes of one run on this node.

    Args:
        spec: the run.
        spec_path: path of the spec, for the children.
        runs_dir: the campaign's ``runs/``.
        rank: of this node's supervisor, see ``RunSpec``; workers are started on the nodes of the run only.
        token: of this start of the job; makes marks and paths unique.
        protocol: another than the planned one, for scheduler and workers.
    """

    def __init__(
        self, spec: RunSpec, spec_path: Path, runs_dir: Path, *, rank: int, token: str, protocol: Optional[str] = None
    ) -> None:
        self.spec = spec
        self.spec_path = spec_path
        self.runs_dir = runs_dir.resolve()
        self.rank = rank
        self.campaign_mark = f"{self.runs_dir}:"
        self._token = token
        self.run_mark = f"{self.campaign_mark}{spec.run}:{token}:"
        self._scratches = Path(os.environ.get("SCRATCHDIR") or tempfile.gettempdir())
        self.scratch, self._hold = scratch.make(self._scratches, f"{spec.run}-{rank}")
        self.env, self.warnings = process_environment(spec, os.environ, self.scratch, f"{self.run_mark}{rank}")
        if spec.device == "gpu":
            if not spec.has_workers(rank) and not self.env.get(VISIBLE):
                # Dask's ucx looks for the first GPU that it names (diagnostics/nvml.py:292@2026.7.1).
                self.env.pop(VISIBLE, None)
            self.env = {**kernel_caches(self._scratches, spec.build_id or spec.image), **self.env}
        self._address_file = self.scratch / "address"
        self.address = f"{ADDRESS_IN_FILE}{self._address_file}"
        self._protocol = ("--protocol", protocol) if protocol else ()
        self._scheduler_file = self.scratch / SCHEDULER_FILE
        # Other jobs have the same launch node.
        self._shared = not spec.has_workers(rank) and spec.scheduler_on == LAUNCH_NODE
        self.children: List[Child] = []
        self.facts = facts()
        self.load = LoadSampler()

    def ucx_error(self) -> str:
        """What UCX last called an error here, in its logs, to end a sentence; empty where it called nothing one."""
        error = ""
        for path in sorted(self.scratch.glob("ucx-*.log")):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                error = line.partition(" UCX  ERROR ")[2] or error
        return f"; UCX: {error.strip()[:MOST_WORDS]}" if error else ""

    def lacking_gpus(self) -> str:
        """Why this node's workers can't have a GPU each; empty if they can, or need none."""
        needs = self.spec.device == "gpu" and self.spec.has_workers(self.rank)
        # Without a driver's library here the workers judge: the image's variables may lead them to one.
        return gpu.lacking(self.spec.workers_per_node, self.env) if needs and nvml.count() else ""

    def ensure_clean(self) -> None:
        """Wait until no process of another run of this campaign is here; end processes and remove files of dead
        supervisors.

        Raises:
            NotCleanError: something is left after the stop deadline, or another job of the campaign has the node.
        """
        owners: Dict[int, int] = {}

        def none_left() -> bool:
            nonlocal owners
            owners = {pid: supervisor_of(pid) for pid in self._of_other_runs()}
            if self._shared:
                owners = {pid: owner for pid, owner in owners.items() if not owner}
            for pid in [pid for pid, owner in owners.items() if not owner]:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            return not owners

        if not poll_until(none_left, time.monotonic() + self.spec.deadlines.stop_s, CLEAN_POLL_S):
            owner = next((owner for owner in owners.values() if owner), 0)
            whose = f"another job of this campaign (its supervisor is process {owner})" if owner else "an earlier run"
            raise NotCleanError(f"node not clean: process {sorted(owners)} of {whose} is still running")
        scratch.clear(self._scratches)
        if self.spec.device == "gpu" and self.spec.has_workers(self.rank) and not self.spec.beside:
            self.facts["gpus_in_use"] = gpu.in_use(self.env.get(VISIBLE, ""))

    def start(self, planned: Sequence[Planned]) -> None:
        """Start processes of the cluster: several on a CPU as forks of one process."""
        if len(planned) > 1 and self.spec.device == "cpu":
            forks = role_words(forked.ROLE, self.spec_path, "--device", self.spec.device)
            self.children += forked.ForkingProcess(forks, planned, self.env, self.scratch).children
            return
        for process in planned:
            self.children.append(
                Child(process.name, command(*process.arguments), self.env, self.scratch, process.handles)
            )

    def planned(self, role: str, name: str, *options: str, handles: Sequence[int] = ()) -> Planned:
        options = (*options, "--device", self.spec.device, *self._protocol)
        return Planned(name, role_words(role, self.spec_path, *options), handles)

    @property
    def has_scheduler(self) -> bool:
        return self.rank == self.spec.scheduler_rank

    def scheduler(self) -> List[Planned]:
        if not self.has_scheduler:
            return []
        return [self.planned("scheduler", "scheduler", "--scheduler-file", str(self._scheduler_file))]

    def scheduler_address(self) -> str:
        """The address of the scheduler that was started here, once it answers; empty before."""
        try:  # Dask's file may not be there as a whole yet
            address = str(json.loads(self._scheduler_file.read_text(encoding="utf-8")).get("address", ""))
        except (OSError, ValueError):
            return ""
        return address if address and _answers(address) else ""

    def workers(self) -> List[Planned]:
        """This node's workers. They import what they need, and wait until ``tell_address`` is called."""
        if not self.spec.has_workers(self.rank):
            return []
        count = 1 if self.spec.device == "gpu" else self.spec.workers_per_node  # one on each GPU that the command sees
        names = [f"worker-{self.rank}-{index}" for index in range(count)]
        return [self.planned("worker", name, "--name", name, "--address", self.address) for name in names]

    def tell_address(self, address: str) -> None:
        """Write the scheduler's address, for which this node's workers and client wait."""
        write_atomic(self._address_file, address.encode("utf-8"))

    def starting(self) -> bool:
        """Whether a process is still to be forked, so that the supervisor has to look for it."""
        return any(child.starting for child in self.children)

    def dead(self) -> Optional[Child]:
        return next((child for child in self.children if child.code is not None), None)

    def stop(self) -> None:
        """End every process of this node, and remove what they left in shared memory."""
        stop_all(self.children, GRACE_S)
        mark = self.env[CLUSTER_VARIABLE]
        end_marked(CLUSTER_VARIABLE, mark.__eq__)  # processes that a workload started in other sessions
        await_cleaners(mark)
        for path in unused_segments():
            with contextlib.suppress(OSError):
                path.unlink()

    def logs(self, *, whole: bool) -> Dict[str, str]:
        """Log texts by name: everything of a failed run, else the last lines."""
        texts = {}
        for path in sorted(self.scratch.glob("*.log")):
            text = path.read_text(encoding="utf-8", errors="replace")
            texts[f"rank{self.rank}/{path.name}"] = text if whole else "\n".join(text.splitlines()[-50:])
        return texts

    def remove(self) -> None:
        """Remove the scratch directory; nothing where that was done before."""
        shutil.rmtree(str(self.scratch), ignore_errors=True)
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1

    def report(self) -> Dict[str, object]:
        """This node's part of the provenance: without the secrets of the job, whose later runs have the same."""
        environment = {name: value for name, value in self.env.items() if name not in (VARIABLE, CLUSTER_VARIABLE)}
        return {"rank": self.rank, **self.facts, "load": self.load.samples, "environment": environment}

    def _of_other_runs(self) -> Dict[int, str]:
        """Processes of this campaign that belong to none of this block's runs."""
        ours = (self.run_mark, *(f"{self.campaign_mark}{run}:{self._token}:" for run in self.spec.beside))

        def foreign(mark: str) -> bool:
            return mark.startswith(self.campaign_mark) and not mark.startswith(ours)

        return marked(CLUSTER_VARIABLE, foreign)
