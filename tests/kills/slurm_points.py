"""What happens to a campaign under a real Slurm.

At a random moment a process of it is killed, or one of Slurm's daemons, or a host; or a host's network is cut. What a
site's staff would mend is mended a while later.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.cli.campaigns import Front, until
from tests.kills.points import OF_A_CLUSTER, SPANS
from tests.slurm.cluster import SlurmCluster

HOSTS = ("n1", "n2")
"""Those of the partition that the campaign asks for."""
PROCESSES = ("front end", "job.sh", "supervisor", *OF_A_CLUSTER)
SITE = ("slurmd", "slurmctld", "host", "network")
LONGEST_DOWN_S = 30.0
"""Slurm gives a silent host up after some 20 s."""


@dataclasses.dataclass(frozen=True)
class SlurmPoint:
    """Kill ``what`` so many seconds after its ``number``-th process on the host was seen, or after the job's script."""

    slurm: SlurmCluster
    what: str
    host: str
    number: int
    after_s: float
    down_s: float

    def __str__(self) -> str:
        where = "" if self.what in ("front end", "job.sh", "slurmctld") else f" on {self.host}"
        away = f", away for {self.down_s:.1f} s" if self.what in SITE else ""
        return f"{self.what} {self.number}{where}, {self.after_s:.2f} s after its start{away}"

    @property
    def kind(self) -> str:
        """What points are counted by."""
        return f"{self.what} under Slurm"

    def start(self, directory: Path, words: list[str], env: dict[str, str]) -> Front:
        return Front(directory, *words, env=env)

    def strike(self, front: Front) -> str:
        """Kill it, and mend what belongs to the site; what was done, in words, empty where it had ended before."""
        of = "job.sh" if self.what in SITE else self.what
        seen: list[int] = []

        def found() -> int | None:
            seen.extend(pid for pid in self._pids(of, front) if pid not in seen)
            return seen[self.number - 1] if len(seen) >= self.number else None

        until(lambda: found() or front.process.poll() is not None, f"the {of}", timeout=600)
        pid = found()
        _await(front, self.after_s)  # its end comes before, or the moment
        if pid is None or pid not in self._pids(of, front):
            return ""
        if self.what in SITE:
            self._break()
            _await(front, self.down_s)
            self._mend()
        else:
            os.kill(pid, signal.SIGKILL)
        return "killed"

    def explains(self, reason: str) -> bool:
        """Whether a run may have failed for this reason: that is a finding, and no hole."""
        return self.what in OF_A_CLUSTER and "SIGKILL" in reason

    def over(self, directory: Path) -> None:
        """Nothing to take back."""

    def _break(self) -> None:
        if self.what == "slurmctld":
            self.slurm.controller_down(kill=True)
        elif self.what == "host":
            self.slurm.crash(self.host)
        elif self.what == "network":
            self.slurm.down_network(self.host)
        else:
            daemons = [pid for pid, line in self._processes() if Path(line.split()[0]).name == "slurmd"]
            for pid in daemons:
                os.kill(pid, signal.SIGKILL)

    def _mend(self) -> None:
        if self.what == "slurmctld":
            self.slurm.controller_up()
        elif self.what == "host":
            self.slurm.revive(self.host)
            # Slurm sees a reboot by the time of the kernel's start, and ends what ran there. Our hosts share a kernel.
            self.slurm.say("scontrol", "update", f"nodename={self.host}", "state=down", "reason=unexpectedly rebooted")
            self.slurm.run(["scontrol", "update", f"nodename={self.host}", "state=resume"])  # if it isn't up already
        elif self.what == "network":
            self.slurm.up_network(self.host)
        else:
            into = ["nsenter", f"--target={self.slurm.hosts[self.host].init}", "--all"]
            subprocess.run([*into, "slurmd", "-f", self.slurm.conf], check=True, capture_output=True, timeout=60)

    def _processes(self) -> list[tuple[int, str]]:
        return sorted(self.slurm.hosts[self.host].processes().items())

    def _pids(self, role: str, front: Front) -> list[int]:
        if role == "front end":
            return [front.process.pid] if front.process.poll() is None else []
        if role == "job.sh":  # on the first host of the job
            hosts = [self.slurm.hosts[name] for name in HOSTS]
            found = [item for host in hosts for item in host.processes().items()]
            return sorted(pid for pid, line in found if "slurm_script" in line or line.endswith("job.sh"))
        if role == "supervisor":
            return [pid for pid, line in self._processes() if "node.pyz run" in line and "--parent" not in line]
        names = (f"--role {role}", f"dask {role}")
        return [pid for pid, line in self._processes() if any(name in line for name in names)]


def slurm_points(slurm: SlurmCluster, seed: int, count: int, campaign_s: float) -> Iterator[SlurmPoint]:
    """So many, each kind in turn, the rest drawn from the seed; what belongs to the site fails while the job runs."""
    rng = random.Random(seed)
    kinds = (*PROCESSES, *SITE)
    for number in range(count):
        what = kinds[number % len(kinds)]
        host = "n1" if what in ("scheduler", "client") else rng.choice(HOSTS)
        which = rng.randint(1, 2) if what in ("supervisor", *OF_A_CLUSTER) else 1
        after_s = rng.uniform(0, SPANS.get(what, SPANS["job.sh"]) * campaign_s)
        yield SlurmPoint(slurm, what, host, which, after_s, rng.uniform(0, LONGEST_DOWN_S))


def _await(front: Front, seconds: float) -> None:
    """Come back after so many seconds, or when the front end has ended."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        front.process.wait(seconds)
