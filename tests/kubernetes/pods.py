"""A pod as processes of this machine: its own network, host name and shared memory; each container its own root.

What a container sees is this machine's /usr and the like, read-only, the image's folders where its Dockerfile would
have put them, and the volumes that its pod mounts: no campaign, no home directory, no other pod. Its list of users
knows root only, as that of an image (seen on Kubernetes 1.36.2: ``getpwuid(): uid not found: 1000``).
"""

from __future__ import annotations

import base64
import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.kubernetes.store import Object
from tests.slurm.hosts import Network

_SANDBOX = r"""
hostname "$1"
echo ready
read -r _
ip link set lo up
ip address add "$2/24" dev eth0
ip link set eth0 up
echo up
sleep infinity
"""
_CONTAINER = r"""
set -eu
root=$1 hosts=$2 uid=$3; shift 3
mount --make-rprivate /
mount -t tmpfs tmpfs "$root"
for name in bin sbin lib lib64 usr etc "$@"; do
  [ "$name" = -- ] && break
  if [ -L "/$name" ]; then ln -s "$(readlink "/$name")" "$root/$name"; continue; fi
  [ -d "/$name" ] || continue
  mkdir -p "$root/$name"
  mount --rbind "/$name" "$root/$name"
  mount -o remount,bind,ro "$root/$name"
done
while [ "$1" != -- ]; do shift; done
shift
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run"
chmod 1777 "$root/tmp"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
for file in hosts nsswitch.conf passwd; do mount --bind "$hosts/$file" "$root/etc/$file"; done
while [ "$1" != -- ]; do # SOURCE TARGET
  mkdir -p "$(dirname "$root$2")"
  if [ -d "$1" ]; then mkdir -p "$root$2"; else : >"$root$2"; fi
  mount --bind "$1" "$root$2"
  shift 2
done
shift
cd /
exec chroot "$root" setpriv "--reuid=$uid" "--regid=$uid" --clear-groups --no-new-privs --bounding-set=-all \
  --inh-caps=-all -- "$@"
"""


def host_name(pod: Object) -> str:
    """What the pod says, else its name as far as a host may have one."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"][:63].rstrip(".-"))


class Sandbox:
    """Namespaces that all containers of a pod share, and its volumes."""

    def __init__(
        self, pod: Object, address: str, network: Network, state: Path, config_maps: Mapping[str, Object]
    ) -> None:
        self.root = root = state / "pods" / pod["metadata"]["name"]
        self._state = state
        self._config_maps = config_maps
        self._pod = pod
        root.mkdir(parents=True)
        words = ["bash", "-c", _SANDBOX, "pause", host_name(pod), address]
        self._pause = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--ipc", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._expect("ready")
        link = f"{network.bridge}p{address.rpartition('.')[2]}"
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(self._pause.pid))
        _ip("link", "set", link, "master", network.bridge, "up")
        assert self._pause.stdin is not None
        self._pause.stdin.write("go\n")
        self._pause.stdin.flush()
        self._expect("up")
        self._volumes = {one["name"]: self._volume(one) for one in pod["spec"].get("volumes", ())}

    def run(self, container: Object, image: Mapping[str, str], log: Path, env: Mapping[str, str]) -> Container:
        """Start a container; ``image`` are folders and files of this machine by their path inside."""
        log.parent.mkdir(parents=True, exist_ok=True)
        inside = dict(image)
        for mount in container.get("volumeMounts", ()):
            source = Path(self._volumes[mount["name"]]) / mount.get("subPath", "")
            inside[mount["mountPath"]] = str(source)
        spaces = ["nsenter", f"--target={self._pause.pid}", "--net", "--uts", "--ipc"]
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", _CONTAINER, "container"]
        root = self.root / "root"
        root.mkdir(exist_ok=True)
        uid = str(self._pod["spec"]["securityContext"]["runAsUser"])
        python = str(Path(sys.base_prefix)).lstrip("/")
        binds = [word for target, source in inside.items() for word in (source, target)]
        words = [str(root), str(self._state), uid, *([] if python.startswith("usr") else [python]), "--", *binds, "--"]
        variables = [f"{name}={value}" for name, value in env.items()]
        with log.open("ab") as out:
            process = subprocess.Popen(
                [*spaces, *unshare, *words, "env", "-i", *variables, *container["command"], *container.get("args", ())],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Container(process)

    def close(self) -> None:
        """End the pod's namespaces, and with them its network."""
        self._pause.kill()
        self._pause.communicate()

    def _volume(self, volume: Object) -> str:
        if "persistentVolumeClaim" in volume:
            return str(self._state / "claims" / volume["persistentVolumeClaim"]["claimName"])
        path = self.root / "volumes" / volume["name"]
        path.mkdir(parents=True)
        path.chmod(0o777)
        if "configMap" in volume:
            held = self._config_maps[volume["configMap"]["name"]]
            for name, text in held["binaryData"].items():
                (path / name).write_bytes(base64.b64decode(text))
        return str(path)

    def _expect(self, word: str) -> None:
        assert self._pause.stdout is not None
        said = self._pause.stdout.readline()
        if said != f"{word}\n":
            raise RuntimeError(f"the sandbox did not come up: {said!r}")


class Container:
    """A running container."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def code(self) -> int | None:
        """Exit code as Kubernetes says it; None while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def signal(self, number: signal.Signals) -> None:
        """Send its first process a signal."""
        pid = self._process.pid
        with contextlib.suppress(OSError, ValueError, IndexError):  # it may have ended
            os.kill(int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]), number)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {shlex.join(words)}: {done.stderr.strip()}")
