"""Engines (Docker's, Podman's) and registries of the tests' own: nothing is shared with the machine's."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import docker
from tests.conftest import free_port, need

USER = "planted-user"
PASSWORD = "planted-password-7f3a"
# bcrypt of PASSWORD; Python has no bcrypt of its own from 3.13 on.
_HTPASSWD = "$2b$04$2/QLeeaItNrK6YjbRfQP/.3pdgMiXoMt/RXHp1yobgSWCJRvqWjTG"
_START_S = 120.0
_STOP_S = 30.0
# A test run that is killed must not leave daemons behind.
_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM")


class _Server:
    """A daemon with a directory of its own, gone with everything in it after ``stop``."""

    def __init__(self, kind: str) -> None:
        # Short and outside the repository: a socket's path has 107 bytes, and a build context must not hold its engine.
        self.home = Path(tempfile.mkdtemp(prefix=f"gpubench-{kind}-", dir="/tmp"))
        self.log = self.home / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self.environment: dict[str, str] = {}
        self._mounted: list[Path] = []

    def small_disk(self, path: Path, size: str) -> None:
        """Put ``path`` on a file system of ``size`` (``64m``) of its own."""
        path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=True)
        self._mounted.append(path)

    def run(self, words: list[str], ready: Callable[[], bool]) -> None:
        """Start the daemon and wait until ``ready``."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*_DIE_WITH_PARENT, *words],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_S
        while not ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = self.log.read_text(errors="replace")[-2000:]
                self.close()
                raise RuntimeError(f"{words[0]} did not start:\n{said}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End the daemon; its data stay."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def close(self) -> None:
        """End the daemon and remove its data."""
        self.stop()
        below = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for path in sorted((path for path in below if path.startswith(f"{self.home}/")), reverse=True):
            subprocess.run(["umount", "--lazy", path], check=False)
        shutil.rmtree(self.home, ignore_errors=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ContainerEngine(_Server):
    """What answers Docker's API at ``socket``."""

    socket: Path

    @property
    def host(self) -> str:
        return f"unix://{self.socket}"

    def client(self) -> docker.DockerClient:
        """The SDK's client of this engine; close it."""
        return docker.DockerClient(base_url=self.host)

    def _answers(self) -> bool:
        # The SDK leaves sockets open that could not be connected.
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(self.socket)):
                return False
        with contextlib.closing(self.client()) as client:
            return bool(client.ping())


class DockerDaemon(ContainerEngine):
    """dockerd on a socket of its own, without bridge and firewall rules; ``size`` puts its images on a small disk."""

    def __init__(self, size: str = "") -> None:
        need(os.geteuid() == 0, "root, to start a Docker engine of its own")
        need(shutil.which("dockerd") is not None, "dockerd (Debian: docker.io)")
        buildx = subprocess.run(["docker", "buildx", "version"], capture_output=True, check=False)
        need(buildx.returncode == 0, "docker buildx (bash requirements/buildx.sh)")
        super().__init__("docker")
        self.data = self.home / "data"
        if size:
            self.small_disk(self.data, size)
        self.socket = self.home / "docker.sock"
        self.start()

    def start(self) -> None:
        """Start it, again after ``stop``."""
        self.run(
            [
                *("dockerd", f"--data-root={self.data}", f"--exec-root={self.home / 'exec'}"),
                *(f"--pidfile={self.home / 'pid'}", f"--host={self.host}", "--storage-driver=overlay2"),
                *("--iptables=false", "--ip6tables=false", "--bridge=none"),
            ],
            self._answers,
        )

    def __enter__(self) -> DockerDaemon:
        return self


class PodmanService(ContainerEngine):
    """Podman's service on a socket of its own; it asks ``registries`` over http, as Docker does on the loopback."""

    def __init__(self, *registries: str) -> None:
        need(os.geteuid() == 0, "root, to mount the images of a Podman of its own")
        need(shutil.which("podman") is not None, "podman")
        super().__init__("podman")
        self.socket = self.home / "podman.sock"
        storage, insecure = self.home / "storage.conf", self.home / "registries.conf"
        storage.write_text(
            f'[storage]\ndriver = "overlay"\nrunroot = "{self.home / "run"}"\ngraphroot = "{self.home / "data"}"\n'
        )
        insecure.write_text("".join(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n' for host in registries))
        self.environment = {
            "CONTAINERS_STORAGE_CONF": str(storage),
            "CONTAINERS_REGISTRIES_CONF": str(insecure),
            "REGISTRY_AUTH_FILE": str(self.home / "auth.json"),
            "TMPDIR": str(self.home),
        }
        self.run(["podman", "system", "service", "--time=0", self.host], self._answers)

    def __enter__(self) -> PodmanService:
        return self


class RegistryServer(_Server):
    """docker-registry on a free port of the loopback.

    ``password``: only USER with PASSWORD may read or write; ``size`` puts its blobs on a small disk.
    """

    def __init__(self, *, password: bool = False, size: str = "") -> None:
        need(shutil.which("docker-registry") is not None, "docker-registry")
        super().__init__("registry")
        self.blobs = self.home / "blobs"
        if size:
            need(os.geteuid() == 0, "root, to mount a small disk")
            self.small_disk(self.blobs, size)
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self._config = self.home / "config.yml"
        self._config.write_text(self._text(password))
        self.start()

    def start(self) -> None:
        """Start it, again after ``stop``: on the same port, with the same images."""
        self.run(["docker-registry", "serve", str(self._config)], self._answers)

    def _text(self, password: bool) -> str:
        lines = [
            "version: 0.1",
            "log: {level: info}",
            f"storage: {{filesystem: {{rootdirectory: {self.blobs}}}, delete: {{enabled: true}}}}",
            f"http: {{addr: '{self.host}'}}",
        ]
        if password:
            users = self.home / "htpasswd"
            users.write_text(f"{USER}:{_HTPASSWD}\n")
            lines.append(f"auth: {{htpasswd: {{realm: test, path: {users}}}}}")
        return "\n".join(lines) + "\n"

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"http://{self.host}/v2/", timeout=5).close()
        except urllib.error.HTTPError as error:
            error.close()
            return error.code == 401
        except OSError:
            return False
        return True

    def __enter__(self) -> Self:
        return self


def debian_base(daemon: ContainerEngine, suite: str = "bookworm") -> str:
    """The reference of a minimal Debian image in ``daemon``, made by debootstrap once per machine.

    It knows this machine's certificate authorities, so that builds reach what this machine reaches.
    """
    reference = f"localhost/gpubench-test-base:{suite}"
    with contextlib.closing(daemon.client()) as client:
        if not client.images.list(reference):
            repository, tag = reference.split(":")
            imported = client.api.import_image_from_file(str(_root_file_system(suite)), repository, tag)
            client.api.tag(json.loads(imported.splitlines()[-1])["status"], repository, tag)  # Podman says latest
    return reference


def _root_file_system(suite: str) -> Path:
    need(shutil.which("debootstrap") is not None, "debootstrap")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpubench-tests"
    archive = cache / f"{suite}-3.tar"  # the number goes up when what is put in changes
    if not archive.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with _work_directory(cache) as work:
            _debootstrap(suite, work / "root")
            made = work / archive.name
            subprocess.run(["tar", "-C", str(work / "root"), "--one-file-system", "-cf", str(made), "."], check=True)
            made.rename(archive)
    return archive


@contextlib.contextmanager
def _work_directory(cache: Path) -> Iterator[Path]:
    work = Path(tempfile.mkdtemp(prefix=".debootstrap-", dir=cache))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


_DEBOOTSTRAP = ("debootstrap", "--variant=minbase", "--include=libgomp1,libnuma1,python3,python3-venv")
"""With what every image of ours installs: its own step then finds it there, in each of the tests' builds."""


def _debootstrap(suite: str, root: Path) -> None:
    made = subprocess.run([*_DEBOOTSTRAP, suite, str(root)], capture_output=True, text=True, check=False)
    need(made.returncode == 0, f"a Debian mirror for debootstrap {suite}: {made.stdout[-300:]}{made.stderr[-300:]}")
    for cached in (root / "var/cache/apt/archives").glob("*.deb"):
        cached.unlink()
    authorities = Path("/etc/ssl/certs/ca-certificates.crt")
    if authorities.exists():
        # Not by its usual name: the package ca-certificates, installed by a build, would write over it.
        shutil.copy(authorities, root / "etc/test-authorities.crt")
        (root / "etc/pip.conf").write_text("[global]\ncert = /etc/test-authorities.crt\n")
