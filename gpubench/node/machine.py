"""Facts about this node, and its load.

The supervisor reads /proc each second, without a further process.
"""

import contextlib
import fcntl
import os
import platform
import socket
import struct
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

from gpubench.node.spec.memory import kernel_text, machine_memory
from gpubench.node.workloads import nvml

SIOCGIFADDR = 0x8915  # linux/sockios.h
NODE_NAME_VARIABLE = "GPUBENCH_NODE_NAME"
"""Set in a pod, whose own host name says nothing of the machine."""


def host() -> str:
    return os.environ.get(NODE_NAME_VARIABLE) or socket.gethostname()


def facts() -> Dict[str, Any]:
    return {
        "host": host(),
        "cpu_model": _cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory": machine_memory(),
        "kernel": platform.release(),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))),
        "governor": kernel_text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        "gpu_model": nvml.models(),
        "gpu_driver": nvml.driver(),
        "gpu_limits": nvml.limits(),
        "network": interfaces(),
    }


class LoadSampler:
    """Load average and the shares of CPU time that were busy and stolen, second by second."""

    def __init__(self, every_s: float = 1.0) -> None:
        self.every_s = every_s
        self.samples: List[Dict[str, float]] = []
        self._last = _cpu_times()
        self._next = time.monotonic() + every_s

    def tick(self) -> float:
        """Take a sample if the last one is old enough; seconds until the next."""
        now = time.monotonic()
        if now < self._next:
            return self._next - now
        self._next = now + self.every_s
        current = _cpu_times()
        busy, stolen, total = (new - old for new, old in zip(current, self._last))
        self._last = current
        if total > 0:
            self.samples.append(
                {
                    "t": round(time.time(), 2),
                    "load1": os.getloadavg()[0],
                    "busy": round(100.0 * busy / total, 1),
                    "steal": round(100.0 * stolen / total, 1),
                }
            )
        return self.every_s


def _cpu_times() -> Tuple[float, float, float]:
    """(busy, stolen, total) clock ticks of all CPUs since boot; proc(5), first line of /proc/stat."""
    fields = [float(word) for word in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    user, nice, system, idle, iowait, irq, softirq, steal = fields
    busy = user + nice + system + irq + softirq
    return busy, steal, busy + steal + idle + iowait


def interfaces(root: str = "/sys/class/net") -> Dict[str, Dict[str, str]]:
    """Speed and MTU of this node's interfaces, as the kernel says them.

    Bridges and the virtual ends on them are left out: they come and go with other people's containers. An interface
    without hardware that is on no bridge is kept, because a container has no other.
    """
    devices = {}
    for path in sorted(Path(root).glob("*")):
        of_containers = (path / "bridge").exists() or ((path / "master").exists() and not (path / "device").exists())
        if not of_containers:
            devices[path.name] = {name: kernel_text(path / name) for name in ("speed", "mtu")}
    return devices


def interface_address(interface: str) -> str:
    """IPv4 address of a network interface.

    Raises:
        OSError: no such interface, or it has no address; the message names the interfaces that exist.
    """
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            packed = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        except OSError as error:
            names = ", ".join(name for _, name in socket.if_nameindex())
            raise OSError(f"interface {interface} has no IPv4 address here (there is: {names})") from error
    return socket.inet_ntoa(packed[20:24])


def _cpu_model() -> str:
    pairs = (line.partition(":") for line in kernel_text(Path("/proc/cpuinfo")).splitlines())
    return next((value.strip() for key, _, value in pairs if key.strip() == "model name"), "")
