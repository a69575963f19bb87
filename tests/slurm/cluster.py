"""A private real Slurm with four hosts: up in about a second, and nothing of it is left afterwards."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from tests.conftest import free_port, need, plain_environment
from tests.slurm import accounting, configuration, sshd
from tests.slurm.daemons import Daemon, answers
from tests.slurm.hosts import NAMES, Host, Network, until

STAND_INS = Path(__file__).resolve().parent.parent / "stand_ins"
FINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"})
OTHER_USER = "nobody"
# Not below /tmp, which every host hides; short, since a socket's path has 107 bytes.
_PARENT = Path("/var/tmp")
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "ip", "unshare", "setpriv")


class SlurmCluster:
    """``with SlurmCluster() as cluster``; the options are those of ``configuration.Options``.

    ``shared`` is the directory that all hosts see, and the machine too. ``/tmp`` is every host's own.
    """

    def __init__(
        self,
        *,
        requeue: bool = False,
        accounting: bool = False,
        memory_limits: bool = False,
        gpus: int = 0,
        ssh: bool = False,
    ) -> None:
        self.options = configuration.Options(requeue, accounting, memory_limits, gpus, ssh)
        _need_parts(self.options)
        _sweep()
        self.root = Path(tempfile.mkdtemp(prefix=f"gbslurm-{os.getpid()}-", dir=_PARENT))
        self.shared = self.root / "shared"
        self.conf = self.root / "etc" / "slurm.conf"
        self.job_records = self.root / "log" / "jobcomp.txt"
        self.ssh_config = self.root / "ssh" / "config"
        self.hosts: dict[str, Host] = {}
        self.up_s = self.down_s = 0.0
        self._network: Network | None = None
        self._daemons: list[Daemon] = []

    def __enter__(self) -> SlurmCluster:
        begun = time.monotonic()
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise
        self.up_s = time.monotonic() - begun
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def env(self, *, pyxis: bool = False) -> dict[str, str]:
        """What a client needs; with ``pyxis`` the stand-ins of srun and enroot come first in PATH and keep state."""
        path = f"{os.environ['PATH']}:/usr/sbin"
        if not pyxis:
            return {"SLURM_CONF": str(self.conf), "PATH": path}
        state = self.shared / "pyxis"
        state.mkdir(exist_ok=True)
        state.chmod(0o777)
        for name in ("creations", "containers"):
            (state / name).touch()
            (state / name).chmod(0o666)
        return {
            "SLURM_CONF": str(self.conf),
            "PATH": f"{self.root / STAND_INS.name}:{path}",
            "STAND_IN_PYXIS_STATE": str(state),
            "STAND_IN_ENROOT_STATE": str(state),
        }

    def run(
        self,
        words: Iterable[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        user: str = "",
        timeout: float = 150,
        pyxis: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a client on the login node, which is this machine, in ``shared`` unless ``cwd`` is given.

        Raises:
            subprocess.TimeoutExpired: no client is waited for without end.
        """
        become = ["setpriv", f"--reuid={user}", "--regid=nogroup", "--clear-groups"] if user else []
        return subprocess.run(
            [*become, *map(str, words)],
            cwd=cwd or self.shared,
            env=plain_environment({**self.env(pyxis=pyxis), **({"USER": user} if user else {}), **(env or {})}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def say(self, *words: str | Path, timeout: float = 60) -> str:
        """Standard output of a client that must succeed."""
        done = self.run(words, timeout=timeout)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout.strip()

    def nodes(self) -> dict[str, str]:
        """The state of every node, by name: idle, mixed*, down ..."""
        lines = self.say("sinfo", "-hN", "-p", "batch", "-o", "%N %T").splitlines()
        return dict(line.split(maxsplit=1) for line in lines)

    def job(self, number: str) -> dict[str, str]:
        """The fields of ``scontrol show job``, empty for a job that Slurm has forgotten."""
        done = self.run(["scontrol", "show", "job", "-o", number], timeout=60)
        return dict(word.partition("=")[::2] for word in done.stdout.split() if "=" in word)

    def wait_job(self, number: str, states: Iterable[str] = FINAL, timeout: float = 240) -> dict[str, str]:
        """The job's fields once its state is one of ``states``.

        Raises:
            TimeoutError: it came into none of them.
        """
        wanted = frozenset(states)
        seen: dict[str, str] = {}

        def there() -> bool:
            seen.update(self.job(number))
            return seen.get("JobState") in wanted

        try:
            until(there, f"job {number} in {sorted(wanted)}", timeout, 0.2)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it is {seen.get('JobState')} ({seen.get('Reason')})") from None
        return self.job(number)

    def wait_idle(self, names: Iterable[str] = NAMES, timeout: float = 240) -> None:
        wanted = set(names)
        until(lambda: wanted <= {n for n, s in self.nodes().items() if s == "idle"}, f"{sorted(wanted)} idle", timeout)

    def crash(self, name: str) -> None:
        """Power off: every process there is killed at once and the network is gone. Slurm notices in about 30 s."""
        self.hosts[name].power_off()

    def revive(self, name: str) -> None:
        """Boot a crashed host; its ``/tmp`` has what it had."""
        self.hosts[name].power_on()
        self.hosts[name].booted()

    def processes_on(self, name: str) -> dict[int, str]:
        """What jobs run there: command lines by process id; Slurm's own daemons and sshd are left out."""
        return {pid: line for pid, line in self.hosts[name].processes().items() if not of_the_host(line)}

    def down_network(self, name: str) -> None:
        """Cut the host off; its processes live on."""
        self.hosts[name].network_down()

    def up_network(self, name: str) -> None:
        self.hosts[name].network_up()

    def controller_down(self, *, kill: bool = False) -> None:
        """End slurmctld; with ``kill`` jobs of the last second may be forgotten."""
        self._controller.stop(kill=kill)

    def controller_up(self) -> None:
        self._controller.start(lambda: answers(["scontrol", "ping"], self.env()))

    def add_cluster(self, name: str) -> None:
        """Another controller that shares the database; its nodes don't exist, so its jobs wait."""
        conf = self.root / "etc" / f"{name}.conf"
        port = free_port(1)
        changes = {
            f"ClusterName={configuration.CLUSTER}": f"ClusterName={name}",
            "SlurmctldPort=": f"SlurmctldPort={port} #",
            f"{self.root}/state": f"{self.root}/state-{name}",
            f"{self.root}/run/slurmctld.pid": f"{self.root}/run/{name}.pid",
            f"{self.root}/log/slurmctld.log": f"{self.root}/log/{name}.log",
        }
        text = self.conf.read_text()
        for before, after in changes.items():
            text = text.replace(before, after)
        lines = [line for line in text.splitlines() if not line.startswith(("NodeName=", "PartitionName=debug"))]
        conf.write_text("\n".join([*lines, f"NodeName=f1 CPUs={configuration.CPUS} State=DOWN", ""]))
        (self.root / f"state-{name}").mkdir()
        accounting.add_users(["root", OTHER_USER], self.env(), name)
        env = {**self.env(), "SLURM_CONF": str(conf)}
        log = self.root / "log" / f"slurmctld-{name}"
        self._start(Daemon(["slurmctld", "-D", "-i"], log, env), lambda: answers(["scontrol", "ping"], env))
        known = ["sacctmgr", "--noheader", "--parsable2", "list", "cluster", name, "format=ControlPort"]
        until(lambda: self.say(*known) == str(port), f"cluster {name} in the database", pause=0.2)

    def close(self) -> None:
        """End and remove everything; may be called again."""
        begun = time.monotonic()
        for host in self.hosts.values():
            host.power_off()
        self.hosts = {}
        while self._daemons:
            self._daemons.pop().stop(kill=True)
        if self._network is not None:
            self._network.close()
            self._network = None
        if self.options.memory_limits:
            _remove_control_groups()
        shutil.rmtree(self.root, ignore_errors=True)
        self.down_s = time.monotonic() - begun

    def _set_up(self) -> None:
        for name in ("etc", "state", "run", "log", "munge", "dev", "spool", "shared"):
            (self.root / name).mkdir()
        # The hosts hide /tmp, where the checkout may lie; a script that a node starts must be where nodes see it.
        shutil.copytree(STAND_INS, self.root / STAND_INS.name)
        self.root.chmod(0o755)
        self.shared.chmod(0o1777)
        self._network = Network()
        port = free_port(2)
        self._write_files(port, self._network)
        munge = self.root / "munge"
        self._start(
            Daemon(_munged(munge), self.root / "log" / "munged"),
            lambda: answers(["munge", "--no-input", f"--socket={munge / 'socket'}"]),
        )
        self._controller = Daemon(["slurmctld", "-D", "-i"], self.root / "log" / "slurmctld", self.env())
        self._daemons.append(self._controller)
        daemons = [f"slurmd -f {self.conf}"]
        if self.options.ssh:
            daemons.append(sshd.set_up(self.root, {name: self._network.address(name) for name in NAMES}))
        self.hosts = {name: Host(name, self._network, self.root, daemons) for name in NAMES}
        for host in self.hosts.values():
            host.power_on()
        if self.options.accounting:
            for daemon, ready in accounting.daemons(self.root, self.env()):
                self._start(daemon, ready)
            accounting.add_users(["root", OTHER_USER], self.env())
        self.controller_up()
        for host in self.hosts.values():
            host.booted()
        self.wait_idle()

    def _start(self, daemon: Daemon, ready: accounting.Ready) -> None:
        self._daemons.append(daemon)
        daemon.start(ready)

    def _write_files(self, port: int, network: Network) -> None:
        addresses = {name: network.address(name) for name in NAMES}
        etc = self.root / "etc"
        self.conf.write_text(configuration.slurm_conf(self.root, network.router, port, addresses, self.options))
        (etc / "gres.conf").write_text(configuration.gres_conf(self.root, self.options))
        (etc / "cgroup.conf").write_text(configuration.cgroup_conf())
        (etc / "plugstack.conf").write_text("")
        hosts = [f"{at} {name}" for name, at in addresses.items()] + [f"{network.router} {socket.gethostname()}"]
        (etc / "hosts").write_text("\n".join(["127.0.0.1 localhost", *hosts, ""]))
        # Hosts reach no name server, and a question that nobody answers takes ten seconds.
        (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
        for number in range(self.options.gpus):
            os.mknod(self.root / "dev" / f"nvidia{number}", 0o20666, os.makedev(1, 3))
        if self.options.accounting:
            (etc / "slurmdbd.conf").touch(0o600)
            (etc / "slurmdbd.conf").write_text(configuration.slurmdbd_conf(self.root, port))
        key = self.root / "munge" / "private" / "key"
        key.parent.mkdir(mode=0o700)
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(128))


def of_the_host(line: str) -> bool:
    """Whether a command line is a daemon's of the host itself, not a job's.

    For a moment sshd still has the words that started it, with its path; then it calls itself ``sshd:``.
    """
    return Path(line.split(maxsplit=1)[0]).name.startswith(("slurmd", "slurmstepd", "sshd"))


def _munged(directory: Path) -> list[str]:
    private = directory / "private"
    return [
        *("munged", "--foreground", "--force", f"--socket={directory / 'socket'}", f"--key-file={private / 'key'}"),
        *(f"--pid-file={directory / 'pid'}", f"--seed-file={private / 'seed'}", f"--log-file={private / 'log'}"),
    ]


def _sweep() -> None:
    """Remove what is left of test runs that were killed."""
    for root in _PARENT.glob("gbslurm-*-*"):
        if not Path("/proc", root.name.split("-")[1]).exists():
            shutil.rmtree(root, ignore_errors=True)


def _need_parts(options: configuration.Options) -> None:
    need(os.geteuid() == 0, "root, to give hosts their own networks")
    effective = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    for name, bit in _CAPABILITIES.items():
        need(bool(int(effective.split()[1], 16) >> bit & 1), name)
    programs = [*_PROGRAMS, *(accounting.PROGRAMS if options.accounting else ()), *(["sshd"] if options.ssh else ())]
    missing = [each for each in programs if not shutil.which(each, path=f"{os.environ['PATH']}:/usr/sbin")]
    need(not missing, f"{', '.join(missing)} (requirements/system.sh)")
    if options.memory_limits:
        need(Path("/sys/fs/cgroup/memory").is_dir(), "control groups of version 1")


def _remove_control_groups() -> None:
    for top in Path("/sys/fs/cgroup").glob("*/slurm_n[1-4]"):
        for path, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                Path(path).rmdir()
