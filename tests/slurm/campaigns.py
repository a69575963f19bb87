"""Users of a private Slurm: the public command on its login node, and images that every user can run."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from gpubench.images.kinds.base import images_root
from gpubench.images.kinds.venvs import ensure
from gpubench.model.images_lock import LOCK_FILE, ImagesLock, LockRow
from gpubench.render.importing import SIDECAR, squashfs_name
from tests.cli.campaigns import write_suite
from tests.conftest import GPUBENCH, need, plain_environment, run_gpubench
from tests.slurm.cluster import OTHER_USER, SlurmCluster
from tests.slurm.images import Stack, link_or_copy, make_image

UCX = "1.22.0"
# Gpubench's own Python may lie in a home directory that others can't enter. The front end may read it all the same;
# what Slurm starts as this user may not.
BECOME = (
    *("setpriv", f"--reuid={OTHER_USER}", "--regid=nogroup", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)


class Login:
    """A user on the login node, in a directory that all nodes see."""

    def __init__(self, slurm: SlurmCluster, directory: Path, cache: Path, *, other: bool = False) -> None:
        self.slurm = slurm
        self.directory = directory
        self._become = BECOME if other else ()
        user = {"USER": OTHER_USER, "HOME": str(directory)} if other else {}
        self.variables = {"XDG_CACHE_HOME": str(cache), "XDG_STATE_HOME": str(directory / "state"), **user}

    def under(self, umask: str) -> None:
        """From now on with this umask."""
        self._become = ("bash", "-c", f'umask {umask} && exec "$@"', "bash", *self._become)

    def lock(self, row: LockRow) -> None:
        """``images.lock.toml`` with this one image."""
        (self.directory / LOCK_FILE).write_text(ImagesLock(image=[row]).dump())

    def start(
        self, *words: str | Path, env: Mapping[str, str] | None = None, pyxis: bool = False
    ) -> subprocess.Popen[str]:
        """Start ``gpubench``; its output is one pipe."""
        return subprocess.Popen(
            [*self._become, str(GPUBENCH), *map(str, words)],
            cwd=self.directory,
            env=plain_environment({**self.slurm.env(pyxis=pyxis), **self.variables, **(env or {})}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str | Path, code: int = 0, env: Mapping[str, str] | None = None, pyxis: bool = False) -> str:
        """What ``gpubench`` says; it must exit with ``code``."""
        if self._become or code < 0:  # another user, or a command that is killed
            with self.start(*words, env=env, pyxis=pyxis) as started:
                said, _ = started.communicate(timeout=500)
            returned = started.returncode
        else:
            variables = {**self.slurm.env(pyxis=pyxis), **self.variables, **(env or {})}
            done = run_gpubench(words, self.directory, variables, one_stream=True)
            said, returned = done.stdout, done.returncode
        assert returned == code, said
        return said

    def plan(self, *words: str | Path, reps: int = 2, pyxis: bool = False) -> Path:
        """A campaign below ``outputs/``: A against A over tcp on one node unless ``words`` say more."""
        campaign = self.directory / "outputs" / f"planned-{secrets.token_hex(4)}"
        new = ("plan", "--images", "--out", campaign, "--site", "local-slurm")
        self.run(*new, *self.shape(reps=reps), *words, pyxis=pyxis)
        return campaign

    def shape(self, *, reps: int = 2) -> Iterable[str]:
        """Options of a small campaign."""
        variants = f"a={UCX} b={UCX}"
        suite = write_suite(self.directory, reps=reps)
        return (
            *("--suite", str(suite), "--variants", variants, "--protocol", "tcp", "--nodes", "1"),
            *("--blocks", "1", "--workers", "1", "--seed", "1"),
        )


def job_ids(campaign: Path) -> dict[str, str]:
    """Slurm's numbers by job, as the campaign remembers them."""
    return {
        path.parent.name: json.loads(path.read_text())["job_id"]
        for path in sorted(campaign.glob("jobs/*/submitted.json"))
    }


def copy_images(cache: Path) -> None:
    """The user's venv image below ``cache``, built before if need be; on a Python that every user can start."""
    root = images_root()
    image, _ = ensure([UCX], root, lambda line: print(line, file=sys.stderr))[UCX]
    home = cache / "gpubench" / "venv"
    home.mkdir(parents=True)
    for file in (image.python, image.env["LD_LIBRARY_PATH"]):
        folder = Path(file).relative_to(root / "venv").parts[0]
        shutil.copytree(root / "venv" / folder, home / folder, symlinks=True, copy_function=link_or_copy)
    for stack in home.glob("ucxx-*"):
        if not _reachable((stack / "files/bin/python").resolve()):
            _move_to(stack, _public_python())


def stack_image(work: Path, cache: Path) -> LockRow:
    """A squashfs image with Dask and UCX, as ``images import`` leaves one below ``cache``; the row that names it.

    Its own environment is wrong wherever a job has something to say.
    """
    image, document = ensure([UCX], images_root(), lambda line: print(line, file=sys.stderr))[UCX]
    document = {**document, "kind": "docker", "build_id": "5" * 32}
    stack = Stack(Path(image.python).parents[1], Path(image.env["LD_LIBRARY_PATH"]).parents[1], json.dumps(document))
    environment = "UCX_TLS=of-the-image\nOUTDIR=/of/the/image\nGPUBENCH_JOB_TOKEN=of-the-image\nLANG=of-the-image\n"
    made = make_image(work, work / "image.sqsh", environment=environment, stack=stack)
    root = cache / "gpubench"
    size, sha256 = made.stat().st_size, hashlib.sha256(made.read_bytes()).hexdigest()
    row = LockRow(
        kind="docker",
        spec=UCX,
        site="local-slurm",
        date="20261107",
        digest=f"sha256:{sha256}",
        build_id="5" * 32,
        ucx_version=UCX,
        binding=image.binding,
        stack="of-a-test",
        python="/opt/gpubench/stack/bin/python",
        env={**image.env, "LD_LIBRARY_PATH": "/opt/gpubench/ucx/lib"},
        architecture=platform.machine(),
        document=document,
    )
    file = root / "squashfs" / squashfs_name(row.digest)
    file.parent.mkdir(parents=True)
    shutil.move(made, file)
    facts = {"digest": row.digest, "ucx_spec": UCX, "date": row.date, "build_id": row.build_id}
    facts |= {"architecture": row.architecture, "squashfs_sha256": sha256}
    file.with_name(f"{file.name}.json").write_text(json.dumps({"schema": SIDECAR, **facts, "size": size}))
    return row


def _reachable(path: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (path, *path.parents))


def _public_python() -> Path:
    wanted = ".".join(platform.python_version_tuple()[:2])
    found = shutil.which(f"python{wanted}", path="/usr/local/bin:/usr/bin")
    need(bool(found), f"a Python {wanted} that every user can start")
    return Path(found or "")


def _move_to(stack: Path, python: Path) -> None:
    """Let the venv stand on another Python of the same release; its marker and content stay true."""
    files, inventory = stack / "files", stack / "inventory.json"
    link, settings = files / "bin" / "python", files / "pyvenv.cfg"
    lines = settings.read_text().splitlines()
    for path in (link, settings):
        path.unlink()
    link.symlink_to(python)
    settings.write_text("\n".join(f"home = {python.parent}" if line.startswith("home") else line for line in lines))
    rows = json.loads(inventory.read_text())
    for path, content in ((link, b"link " + os.fsencode(python)), (settings, settings.read_bytes())):
        status = path.lstat()
        row = (status.st_size, status.st_mtime_ns, hashlib.sha256(content).hexdigest())
        rows[str(path.relative_to(files))] = row
    inventory.unlink()
    inventory.write_text(json.dumps(rows))
