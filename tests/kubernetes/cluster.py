"""A small cluster for tests: the stand-in kubectl on PATH, its agent, two images with real UCX, a user's commands."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpubench.images.kinds.base import images_root
from gpubench.images.kinds.venvs import ensure
from gpubench.model.image import Image
from gpubench.model.images_lock import LOCK_FILE, ImagesLock, LockRow
from tests.cli.campaigns import nothing_left, until, write_suite
from tests.conftest import GPUBENCH, ROOT, need, plain_environment, run_gpubench
from tests.kubernetes.store import Object, Store

VERSIONS = ("1.19.0", "1.22.0")
REGISTRY = "registry.example/team/bench"
SITE = """
inherits = "kubernetes"
name = "tiny"
description = "two nodes of a test"
[layout]
workers = 1
[node]
cores = 2
memory = "3GiB"
[kubernetes]
start = "240s"
shm = "64MiB"
{more}
[limits]
start = "240s"
"""


class Cluster:
    """``nodes`` nodes; ``directory`` is the user's."""

    def __init__(self, root: Path, *, nodes: int = 2) -> None:
        need(os.geteuid() == 0 and bool(shutil.which("ip") and shutil.which("setpriv")), "root, ip and setpriv")
        self.root, self.directory = root / "cluster", root / "user"
        self.directory.mkdir(parents=True)
        self.store = Store(self.root)
        self._bin = root / "bin"
        self._bin.mkdir()
        stand_in = ROOT / "tests" / "stand_ins" / "kubectl"
        (self._bin / "kubectl").write_text(f'#!/bin/bash\nexec {sys.executable} {stand_in} "$@"\n')
        (self._bin / "kubectl").chmod(0o755)
        self.have_nodes(nodes)
        self._images: dict[str, dict[str, str]] = {}
        self.have_images(self._images)
        self._cache = root / "cache"
        (self.root / "claims" / "results").mkdir(parents=True)
        self._log = (root / "agent.log").open("wb")
        self._agent = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "tests.kubernetes.agent", str(self.root)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )

    def close(self) -> None:
        """End the agent, and with it every pod."""
        self._agent.terminate()
        self._agent.wait(30)
        self._log.close()

    def tidy(self) -> None:
        """As it was at first."""
        self.have_nodes(2)
        self.have_all_images()
        for job in self.store.all("Job"):
            self.store.delete(job)
        until(lambda: not self.store.all("Job"), "the end of every job")
        nothing_left(self.processes)

    def have_nodes(self, count: int, *, full: bool = False) -> None:
        """That many nodes; ``full`` ones take no further pod, not even when one of ours has ended there."""
        each = {"labels": {}, "allocatable": {"cpu": "0" if full else "4", "memory": "8Gi"}}
        self._write("nodes.json", {f"k{number + 1}": each for number in range(count)})

    def have_images(self, images: Mapping[str, Mapping[str, str]]) -> None:
        """What can be pulled, by reference."""
        self._write("images.json", images)

    def _write(self, name: str, plain: object) -> None:
        """By rename: the agent may read at any moment, and an agent that reads half a file dies."""
        part = self.root / f"{name}.part"
        part.write_text(json.dumps(plain))
        part.replace(self.root / name)

    def have_all_images(self) -> None:
        """Whatever has been pushed can be pulled."""
        self.have_images(self._images)

    def push_images(self) -> dict[str, dict[str, str]]:
        """Images of the venv stack with two versions of UCX, pushed, and locked for the user's site."""
        found = ensure(VERSIONS, images_root(), lambda line: print(line, file=sys.stderr))
        rows = [self._push(spec, *found[spec]) for spec in VERSIONS]
        (self.directory / LOCK_FILE).write_text(ImagesLock(image=rows).dump())
        self.have_images(self._images)
        return self._images

    def write_site(self, more: str = "") -> str:
        """The profile ``tiny``."""
        path = self.directory / "site.toml"
        path.write_text(SITE.format(more=more))
        return str(path)

    def env(self) -> dict[str, str]:
        """Variables of a user of this cluster."""
        return {
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "STAND_IN_KUBERNETES": str(self.root),
            "XDG_CACHE_HOME": str(self._cache),
            "XDG_STATE_HOME": str(self.directory / "state"),
        }

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        """Start ``gpubench``; its output is one pipe."""
        return subprocess.Popen(
            [str(GPUBENCH), *map(str, words)],
            cwd=self.directory,
            env=plain_environment(self.env()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str | Path, code: int = 0) -> str:
        """What ``gpubench`` says; it must exit with ``code``."""
        assert self._agent.poll() is None, f"the agent ended: {(self.root.parent / 'agent.log').read_text()}"
        done = run_gpubench(words, self.directory, self.env(), one_stream=True)
        assert done.returncode == code, (
            f"{done.returncode}: {done.stdout}\n{(self.root.parent / 'agent.log').read_text()}"
        )
        return done.stdout

    def plan(self, *words: str, more: str = "", reps: int = 2, suite: Path | None = None) -> Path:
        """A campaign of two variants on two nodes, one block, unless ``words`` say more."""
        suite = suite or write_suite(self.directory, reps=reps)
        shape = ["--suite", str(suite), "--nodes", "2", "--blocks", "1", "--seed", "1"]
        variants = ["--variants", " ".join(VERSIONS)]
        campaign = self.directory / "outputs" / f"planned-{secrets.token_hex(4)}"
        new = ("plan", "--images", "--out", campaign, "--site", self.write_site(more))
        self.run(*new, *variants, *shape, *words)
        return campaign

    def pods(self) -> Iterator[Object]:
        """Every pod by name."""
        yield from self.store.all("Pod")

    def processes(self) -> list[str]:
        """Command lines of whatever runs in a container."""
        return list(self.process_ids().values())

    def process_ids(self) -> dict[int, str]:
        """Their command lines by process id; of this cluster only, since another test's may stand beside it."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                env = (entry / "environ").read_bytes()
                ours = b"GPUBENCH_POD=/run/gpubench/" in env or b"GPUBENCH_CLUSTER=/run/gpubench/" in env
                if ours and self._agent.pid in _ancestors(int(entry.name)):
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(entry.name)] = line.decode(errors="replace")
            except OSError:
                continue
        return found

    def _push(self, spec: str, image: Image, document: Mapping[str, object]) -> LockRow:
        python, env = Path(image.python), image.env
        digest = f"sha256:{hashlib.sha256(spec.encode()).hexdigest()}"
        build_id = digest[7:39]
        described = {**document, "kind": "docker", "build_id": build_id}
        manifest = self.root / f"manifest-{spec}.json"
        manifest.write_text(json.dumps(described))
        manifest.chmod(0o644)
        ucx = Path(env["LD_LIBRARY_PATH"]).parents[1]
        bundled = next(ucx.glob("libucx*.libs"))
        self._images[f"{REGISTRY}@{digest}"] = {
            "/opt/gpubench/stack": str(python.parents[1]),
            "/opt/gpubench/ucx": str(ucx / "libucx"),
            f"/opt/gpubench/{bundled.name}": str(bundled),
            "/gpubench/manifest.json": str(manifest),
        }
        return LockRow(
            kind="docker",
            spec=spec,
            site="tiny",
            registry=REGISTRY,
            date="20261121",
            digest=digest,
            build_id=build_id,
            ucx_version=image.ucx_version,
            binding=image.binding,
            stack="of-a-test",
            python="/opt/gpubench/stack/bin/python",
            env={**env, "LD_LIBRARY_PATH": "/opt/gpubench/ucx/lib"},
            architecture=platform.machine(),
            document=described,
        )


def _ancestors(pid: int) -> Iterator[int]:
    """Its parent, the parent of that, and so on: containers, with all that they started, are below their agent."""
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        yield pid
