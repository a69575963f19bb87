"""Login nodes of a test: a stand-in for enroot, and the rendered script."""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpubench import resources
from gpubench.images.kinds import squashfs
from gpubench.model.images_lock import LockRow
from gpubench.render.importing import render_import
from tests.cli.campaigns import until
from tests.conftest import ROOT, need

BUILD = "b-0123"
SPEC = "1.19.0"
DATE = "20260101"
REPOSITORY = "team/ucx"


def image_files(build: str = BUILD, size: int = 200_000) -> dict[str, bytes]:
    """What a small image holds: its manifest, and bytes that don't compress."""
    return {"gpubench/manifest.json": f'{{"build_id": "{build}"}}'.encode(), "data": os.urandom(size)}


class Importer:
    """One login node: its PATH, its enroot or the real Apptainer, its cache; the folder is shared."""

    def __init__(self, home: Path, folder: Path, program: str = "enroot") -> None:
        self.program = program
        self.home = home
        self.folder = folder
        self.state = home / "enroot"
        self.cache = home / "cache"
        (home / "config").mkdir(parents=True)
        (home / "tmp").mkdir()
        self.state.mkdir()
        tools = home / "bin"
        tools.mkdir()
        if program == "enroot":
            (tools / "enroot").symlink_to(ROOT / "tests" / "stand_ins" / "enroot")
        else:
            real = shutil.which("apptainer")
            need(real is not None, "apptainer (bash requirements/apptainer.sh)")
            note = f'[ "$1" != pull ] || printf "%s\n" "${{@: -1}}" >>{shlex.quote(str(self.state / "imports"))}'
            (tools / "apptainer").write_text(f'#!/bin/bash\n{note}\nexec {real} "$@"\n')
            (tools / "apptainer").chmod(0o755)
        self.env = {
            "PATH": f"{tools}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "ENROOT_ALLOW_HTTP": "yes",
            "ENROOT_CONFIG_PATH": str(home / "config"),
            "ENROOT_CACHE_PATH": str(self.cache),
            "STAND_IN_ENROOT_STATE": str(self.state),
            "GPUBENCH_IMPORT_PAUSE": "0",
            "GPUBENCH_IMPORT_BEAT": "1",
            "GPUBENCH_IMPORT_TRIES": "3",
        }

    def says_it_is(self, version: str) -> None:
        (self.state / "version").write_text(version)

    @property
    def imports(self) -> list[str]:
        """The URIs that the program was given; enroot's as it parsed them."""
        path = self.state / "imports"
        return path.read_text().splitlines() if path.exists() else []

    def write(self, items: Sequence[LockRow]) -> Path:
        """The script."""
        script = self.home / "import.sh"
        texts = resources.texts("templates", "importing/**/*.j2")
        script.write_text(render_import(items, str(self.folder), texts, program=self.program, gpubench="0.1"))
        return script

    def start(self, items: Sequence[LockRow], **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", str(self.write(items))],
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *items: LockRow, **env: str) -> tuple[int, str]:
        with self.start(items, **env) as started:
            _, said = started.communicate(timeout=300)
        return started.returncode, said

    def left_over(self) -> list[str]:
        """Hidden files in the folder and whatever lies in the temporary directory."""
        return sorted(path.name for path in [*self.folder.glob(".*"), *(self.home / "tmp").iterdir()])

    def check(self, digest: str) -> squashfs.ImportedSquashfs:
        """The imported file, every byte of it checked."""
        found = squashfs.find_import(self.folder, digest)
        assert found
        squashfs.check(found)
        sidecar = json.loads(Path(f"{found.path}.json").read_text())
        assert sidecar["squashfs_sha256"] == hashlib.sha256(found.path.read_bytes()).hexdigest()
        return found


def row(**changes: Any) -> LockRow:
    """A row of the lock: an image that a site has in a registry, with these fields."""
    plain = {"kind": "docker", "spec": SPEC, "site": "here", "date": DATE, "build_id": BUILD, "ucx_version": SPEC}
    plain |= {"binding": "ucxx", "stack": "ucxx-0.45.1", "python": "/opt/gpubench/stack/bin/python"}
    return LockRow(**{**plain, "architecture": "x86_64", "document": {}, **changes})


def item(host: str, digest: str, *, spec: str = SPEC, build_id: str = BUILD, architecture: str = "x86_64") -> LockRow:
    """The row of an image that is to be imported from ``host``."""
    place = {"registry": f"{host}/{REPOSITORY}", "tag": f"ucx-py-{spec}-{DATE}", "digest": digest}
    return row(spec=spec, ucx_version=spec, build_id=build_id, architecture=architecture, **place)


def wait_for_blobs(paths: list[str]) -> None:
    """Until a part of an image has been asked for."""
    until(lambda: any("/blobs/" in path for path in paths), "a part of an image")
