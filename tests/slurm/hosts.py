"""Four hosts on one machine: each has its own network, host name, processes, shared memory, ``/tmp`` and ``/run``.

A host is the namespaces of one process, its init. When that process is killed the kernel ends everything on the host at
once and takes its network interface away, as a power cut does. The file system is the machine's, so it is shared.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

NAMES = ("n1", "n2", "n3", "n4")
INTERFACE = "eth0"
_PREFIX = "gbs"
_ALIAS = "gpubench-slurm:"
# /sys shows the interfaces of the network namespace that mounted it; the control groups below it stay the machine's.
_INIT = r"""
set -eu
name=$1 address=$2 hardware=$3 router=$4 root=$5; shift 5
hostname "$name"
for file in hosts nsswitch.conf; do mount --bind "$root/etc/$file" "/etc/$file"; done
mount --bind "$root/hosts/$name/tmp" /tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/sshd
if [ -d /sys/fs/cgroup ]; then
  mkdir /run/cgroup
  mount --rbind /sys/fs/cgroup /run/cgroup
  mount -t sysfs sysfs /sys
  mount --move /run/cgroup /sys/fs/cgroup
fi
echo ready
read -r _
ip link set lo up
ip link set eth0 address "$hardware"
ip address add "$address/24" dev eth0
ip link set eth0 up
ip route add default via "$router"
for daemon; do $daemon </dev/null >>"$root/log/$name.log" 2>&1; done
echo booted
sleep infinity &
wait
"""


class Network:
    """A bridge of its own with a free /24; ``close`` removes it."""

    def __init__(self) -> None:
        _sweep()
        taken = {row.split()[2].rsplit(".", 1)[0] for row in _ip("-o", "-4", "address").splitlines() if " inet " in row}
        for octet in range(1, 255):
            self.bridge = f"{_PREFIX}{octet}"
            self._subnet = f"10.77.{octet}"
            made = subprocess.run(
                ["ip", "link", "add", "name", self.bridge, "type", "bridge"], capture_output=True, check=False
            )
            if made.returncode == 0 and self._subnet not in taken:
                break
        else:
            raise RuntimeError("no free subnet below 10.77.0.0/16")
        self.router = f"{self._subnet}.254"
        try:
            _ip("link", "set", self.bridge, "alias", f"{_ALIAS}{os.getpid()}", "up")
            _ip("address", "add", f"{self.router}/24", "dev", self.bridge)
        except BaseException:
            self.close()
            raise

    def address(self, name: str) -> str:
        return f"{self._subnet}.{NAMES.index(name) + 1}"

    def close(self) -> None:
        subprocess.run(["ip", "link", "delete", self.bridge], capture_output=True, check=False)


class Host:
    """One host of ``network``; ``daemons`` are shell words that init runs at boot and that put themselves behind."""

    def __init__(self, name: str, network: Network, root: Path, daemons: list[str]) -> None:
        self.name = name
        self.address = network.address(name)
        self._network = network
        self._root = root
        self._daemons = daemons
        self._link = f"{network.bridge}{name}"
        self._unshare: subprocess.Popen[str] | None = None
        self.init = 0

    def power_on(self) -> None:
        """Begin to boot; ``booted`` waits for the end."""
        tmp = self._root / "hosts" / self.name / "tmp"
        tmp.mkdir(parents=True, exist_ok=True)
        tmp.chmod(0o1777)
        (self._root / "log" / f"{self.name}.log").touch()
        namespaces = ["--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
        # As of a real host, it is the same after each boot: others on the network know it for half a minute.
        hardware = ":".join(f"{int(part):02x}" for part in ("2", "0", *self.address.split(".")))
        words = ["bash", "-c", _INIT, "init", self.name, self.address, hardware, self._network.router, str(self._root)]
        self._unshare = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", *namespaces, *words, *self._daemons],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def booted(self) -> None:
        """Wait until the daemons are started.

        Raises:
            RuntimeError: what init said last.
        """
        assert self._unshare is not None
        assert self._unshare.stdin is not None
        self._expect("ready")
        pid = self._unshare.pid
        self.init = int(Path(f"/proc/{pid}/task/{pid}/children").read_text())
        _ip("link", "add", self._link, "type", "veth", "peer", "name", INTERFACE, "netns", str(self.init))
        _ip("link", "set", self._link, "master", self._network.bridge, "up")
        self._unshare.stdin.write("the link is there\n")
        self._unshare.stdin.flush()
        self._expect("booted")

    def power_off(self) -> None:
        """Kill every process of the host at once and take its link away; nothing on it hears of it."""
        if self._unshare is None:
            return
        if self.init:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.init, signal.SIGKILL)
        self._unshare.kill()
        self._unshare.communicate()
        self._unshare, self.init = None, 0
        subprocess.run(["ip", "link", "delete", self._link], capture_output=True, check=False)

    def network_down(self) -> None:
        """Cut the cable: the processes live on."""
        _ip("link", "set", self._link, "down")

    def network_up(self) -> None:
        _ip("link", "set", self._link, "up")

    def processes(self) -> dict[int, str]:
        """Command lines of what runs on the host, by the machine's process ids; without init and its sleep."""
        if not self.init:
            return {}
        own = _namespace(self.init)
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            pid = int(path.name)
            with contextlib.suppress(OSError):
                if pid != self.init and _namespace(pid) == own:
                    found[pid] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return {pid: line for pid, line in found.items() if line and line != "sleep infinity"}

    def _expect(self, word: str) -> None:
        assert self._unshare is not None
        assert self._unshare.stdout is not None
        said: list[str] = []
        while said[-1:] != [f"{word}\n"]:
            said.append(self._unshare.stdout.readline())
            if not said[-1]:
                logs = sorted((self._root / "log").glob(f"*{self.name}.log"))
                raise RuntimeError(f"{self.name} did not boot: {''.join([*said, *(log.read_text() for log in logs)])}")


def _namespace(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/pid").readlink())


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _sweep() -> None:
    """Remove bridges of test runs that were killed; nothing else outlives its run."""
    for link in json.loads(_ip("-json", "link", "show", "type", "bridge") or "[]"):
        alias = link.get("ifalias", "")
        if alias.startswith(_ALIAS) and not Path("/proc", alias.removeprefix(_ALIAS)).exists():
            # Another process of the same test run may be sweeping, too, and be faster.
            subprocess.run(["ip", "link", "delete", link["ifname"]], capture_output=True, check=False)


def until(condition: Callable[[], object], what: str, timeout: float = 240.0, pause: float = 0.05) -> None:
    """Poll ``condition``.

    Raises:
        TimeoutError: it did not hold within ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout:g} s")
        time.sleep(pause)
