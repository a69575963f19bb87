"""Kind ``venv``: one Python stack for all images of a campaign, and one folder of libucx per UCX version.

Below ``paths.images`` (default: the user's cache directory) lie, side by side::

    venv/ucxx-0.45.1-py3.11.7-<key>/files/bin/python       a stack: Python packages, no UCX
    venv/ucx-1.19.0-<key>/files/libucx/lib/libucp.so.0     one UCX version, shared by all stacks

``<key>`` is the hash of what goes in: the lock's bytes, the wheel's SHA-256, the Python version. Every input is pinned
by its own hash, so one key means one content; the content's hash is measured after the build (see ``folders``) and is
the image's id. A folder never changes once it has its name: a campaign's image stays as it was when others are built.

No venv can be moved whole (its scripts name their Python by path), but ``bin/python`` finds its packages through
``pyvenv.cfg`` beside it, wherever it lies: that is all that is ever used, so building elsewhere and renaming is safe.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpubench.errors import DataError, MissingToolError
from gpubench.images import folders
from gpubench.images.compatibility import Stack, choose
from gpubench.images.folders import Folder, Progress
from gpubench.images.installer import WHEELS_ONLY, environment, program, run_uv
from gpubench.images.kinds.base import Entry, ImagePaths, ImageRequest, Leftover, Needed, Obtained
from gpubench.images.manifests import MANIFEST, manifest_id
from gpubench.images.specs import Wheel, resolve
from gpubench.model.image import Image
from gpubench.model.quantities import format_seconds
from gpubench.resources import docker_file
from gpubench.spec.plain import content_id

ON_DEMAND = True


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """A Python: the path of its program and its full version, like ``3.11.7``."""

    path: str
    version: str


def find_python(stack: Stack) -> Interpreter:
    """A Python inside the stack's range.

    Raises:
        MissingToolError: there is none on this machine.
    """
    own = platform.python_version()
    if stack.python.holds(".".join(own.split(".")[:2])):
        return Interpreter(sys.executable, own)
    first, last = (int(end.split(".")[1]) for end in (stack.python.min, stack.python.max))
    for minor in range(last, first - 1, -1):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            path = _printed(program(), "python", "find", "--no-project", "--no-config", f"3.{minor}")
            return Interpreter(path, _printed(path, "-I", "-c", "import platform; print(platform.python_version())"))
    raise MissingToolError(
        f"stack {stack.name} needs Python {stack.python}; gpubench runs on {own}, and no other Python was found",
        then=f"install Python {stack.python.max}",
    )


def _printed(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, env=environment(os.environ), check=True, timeout=60)
    return done.stdout.strip()


_STAND_IN = "venv/libucx.py"


def stack_folder(stack: Stack, home: Path, progress: Progress) -> Folder:
    """The stack's folder below ``home``, built if it is missing; raises as ``venv.build``."""
    python = find_python(stack)
    lock, stand_in = stack.lock_file.read_bytes(), docker_file(_STAND_IN).read_bytes()
    lock_hash = hashlib.sha256(lock).hexdigest()
    key = content_id(
        {
            "lock": lock_hash,
            "libucx": hashlib.sha256(stand_in).hexdigest(),
            "python": python.version,
            "machine": platform.machine(),
        }
    )

    def fill(files: Path, hold: int) -> dict[str, Any]:
        started = time.monotonic()
        progress(f"building the Python stack {stack.name}: dask {stack.dask}, Python {python.version}")
        log = home / "logs" / f"stack-{stack.name}.log"
        run_uv(["venv", "--no-project", "--python", python.path, str(files), "--allow-existing"],
               what=f"a venv on {python.path}", folder=files.parent, log=log, hold=hold)  # fmt: skip
        packages = next(files.glob("lib/python3*/site-packages"))
        shutil.copyfile(docker_file(_STAND_IN), packages / "libucx.py")
        words = ["pip", "sync", "--python", str(files / "bin" / "python"), *WHEELS_ONLY, "--compile-bytecode"]
        run_uv([*words, str(stack.lock_file)], what=f"stack {stack.name}", folder=files.parent, log=log, hold=hold)
        progress(f"built the Python stack {stack.name} in {format_seconds(time.monotonic() - started)}")
        return {"python": python.version, "lock": lock_hash, "packages": _packages(packages)}

    return folders.obtain(home, f"{stack.name}-py{python.version}-{key}", fill, progress, sound=check_python)


def check_python(stack: Folder) -> None:
    """Whether the Python that the stack was built on is still there.

    Raises:
        DataError: it is gone.
    """
    python = stack.files / "bin" / "python"
    if not os.access(python, os.X_OK):
        raise DataError(
            f"image folder {stack.path} was built on a Python that is gone ({python.readlink()})",
            then="the next plan or bench of its version builds it anew",
        )


def _packages(folder: Path) -> dict[str, str]:
    found = importlib.metadata.distributions(path=[str(folder)])
    return dict(sorted((item.metadata["Name"].lower().replace("_", "-"), item.version) for item in found))


def ucx_folder(wheel: Wheel, python: Path, home: Path, progress: Progress) -> Folder:
    """The version's folder below ``home``, built if it is missing; ``python`` says for which platform."""
    digest = wheel.digest()

    def fill(files: Path, hold: int) -> dict[str, Any]:
        started = time.monotonic()
        progress(f"building UCX {wheel.version}")
        where = ["--python", str(python), "--target", str(files)]
        words = ["pip", "install", "--no-deps", *WHEELS_ONLY, *where, "-r", "-"]
        run_uv(words, what=f"UCX {wheel.version}", folder=files.parent, log=home / "logs" / f"ucx-{wheel.version}.log",
               hold=hold, text=f"libucx-cu12=={wheel.version} --hash=sha256:{digest}\n")  # fmt: skip
        facts = ask_ucx(files, wheel)
        progress(f"built UCX {wheel.version} in {format_seconds(time.monotonic() - started)}")
        return facts | {"version": wheel.version, "wheel": digest}

    return folders.obtain(home, f"ucx-{wheel.version}-{digest[:12]}", fill, progress)


def ask_ucx(files: Path, wheel: Wheel) -> dict[str, Any]:
    """Release, git revision and configure line, as the library itself says.

    Raises:
        DataError: it doesn't run, is another release than the wheel's name says, or was loaded from elsewhere.
    """
    program, libraries = files / "libucx" / "bin" / "ucx_info", files / "libucx" / "lib"
    # The wheel's RUNPATH points at the machine that built it.
    env = {"LD_LIBRARY_PATH": str(libraries)}
    try:
        done = subprocess.run([program, "-v"], env=env, capture_output=True, text=True, timeout=60, check=False)
        output = done.stdout + done.stderr
    except (OSError, subprocess.SubprocessError) as error:
        output = str(error)
    said = {
        key: match[1] if (match := re.search(pattern, output)) else ""
        for key, pattern in {
            "release": r"Library version: (\S+)",
            "path": r"Library path: (\S+)",
            "revision": r"revision (\w+)",
            "configure": r"Configured with: (.*\S)",
        }.items()
    }
    if said["release"] != wheel.release or not said.pop("path").startswith(str(libraries)):
        raise DataError(
            f"the wheel of UCX {wheel.version} answers as UCX '{said['release']}': {' '.join(output.split())[:200]}",
            then="it can't be used on this machine; choose another version",
        )
    return said


@dataclasses.dataclass(frozen=True)
class BuiltVenv:
    """An image: a row of the table and a wheel, and the two folders that hold them."""

    row: Stack
    wheel: Wheel
    stack: Folder
    ucx: Folder

    @property
    def python(self) -> Path:
        """Starts the node half."""
        return self.stack.files / "bin" / "python"

    @property
    def libraries(self) -> Path:
        """The folder of libucp."""
        return self.ucx.files / "libucx" / "lib"


def image_id(stack: Folder, ucx: Folder) -> str:
    """The same id is the same content."""
    return content_id({"stack": stack.content, "ucx": ucx.content})


def build_venvs(row: Stack, wheels: Sequence[Wheel], root: Path, progress: Progress) -> list[BuiltVenv]:
    """One image per wheel, all on one stack; folders that are there already are checked, missing and damaged
    ones built.

    ``root`` is ``paths.images``; ``progress`` gets one line per step. Safe to call from several processes at once.

    Raises:
        MissingToolError: the index doesn't answer, the disk is full, no fitting Python.
        UsageError: ``root`` can't be written.
        DataError: a wheel doesn't hold the UCX that its name says.
        PlanRefusedError: no wheel for this machine.
    """
    home = root.resolve() / "venv"
    for wheel in wheels:
        wheel.digest()  # a machine without wheels is refused before a stack is fetched
    stack = stack_folder(row, home, progress)
    python = stack.files / "bin" / "python"
    return [BuiltVenv(row, wheel, stack, ucx_folder(wheel, python, home, progress)) for wheel in wheels]


def ensure(specs: Sequence[str], root: Path, progress: Progress) -> dict[str, tuple[Image, dict[str, Any]]]:
    """One image per spec with its manifest, built where missing or damaged; all on one stack.

    ``root`` is where images live (see ``images_root``); ``progress`` gets one line per step. Specs that mean the same
    version share the image.

    Raises:
        UsageError: an unknown or ambiguous version, a ``root`` that can't be written.
        PlanRefusedError: a branch, or versions that no one stack can run.
        MissingToolError: the index doesn't answer, the disk is full, no fitting Python.
        DataError: a wheel doesn't hold the UCX that its name says.
    """
    # All names are settled before anything is fetched: a typo in the last version must not cost a build.
    wheels = {spec: resolve(spec) for spec in specs}
    stack = choose(list(wheels.values()))
    distinct = {wheel.version: wheel for wheel in wheels.values()}
    built = dict(zip(distinct, build_venvs(stack, list(distinct.values()), root, progress), strict=True))
    return {spec: _image(spec, built[wheel.version]) for spec, wheel in wheels.items()}


def verify(image: Image, *, deep: bool = False) -> None:
    """Refuse an image that isn't what was built. Cheap (sizes and times of its files); ``deep`` reads every byte.

    Raises:
        DataError: a file changed, is missing or was added; names the folder and what to do.
    """
    stack = folders.read(Path(image.python).parents[2])
    ucx = folders.read(Path(image.env["LD_LIBRARY_PATH"]).parents[2])
    for folder in (stack, ucx):
        folders.check(folder, deep=deep)
    check_python(stack)
    if image_id(stack, ucx) != image.id:
        raise DataError(f"image {image.ucx_spec} in {ucx.path} is not the planned one ({image.id})", then="plan anew")


def _image(spec: str, built: BuiltVenv) -> tuple[Image, dict[str, Any]]:
    document = manifest(built)
    image = Image(
        kind="venv",
        id=image_id(built.stack, built.ucx),
        ucx_spec=spec,
        ucx_version=built.wheel.version,
        binding=built.row.binding,
        python=str(built.python),
        env={
            "RAPIDS_LIBUCX_PREFER_SYSTEM_LIBRARY": "true",
            "LD_LIBRARY_PATH": str(built.libraries),
        },
        manifest=manifest_id(document),
    )
    return image, document


def manifest(built: BuiltVenv) -> dict[str, Any]:
    """The manifest of an image; two images on one stack differ only below ``ucx``.

    ``ucx.libucp`` is the file that must show up in the memory map of every process of a run; ``ucx.release`` is what
    the library reports, ``ucx.version`` the wheel's full version, ``content`` the hash of the files.
    """
    stack, ucx = built.stack.facts, built.ucx.facts
    row = built.row
    return {
        "schema": MANIFEST,
        "kind": "venv",
        "ucx": {
            "spec": built.wheel.release,
            "version": ucx["version"],
            "release": ucx["release"],
            "revision": ucx["revision"],
            "configure": ucx["configure"],
            "content": built.ucx.content,
            "wheel": ucx["wheel"],
            "libucp": str((built.libraries / "libucp.so.0").resolve()),
        },
        "stack": {
            "name": row.name,
            "python": stack["python"],
            "packages": stack["packages"],
            "lock": stack["lock"],
            "content": built.stack.content,
        },
        "binding": {"name": row.binding, "version": row.binding_version, "scheme": row.scheme},
    }


def obtain(request: ImageRequest) -> Obtained:
    """All on one stack, built where missing or damaged: no decision of anybody's. Raises as ``ensure``."""
    return Obtained(dict(ensure(request.specs, request.root, request.progress)))


ready = verify


def entries(paths: ImagePaths) -> list[Entry]:
    """The stacks and the UCX versions, which any of the stacks can run."""
    found = []
    for path in sorted((paths.root / "venv").glob("*-*/image.json")):
        try:
            folder = folders.read(path.parent)
        except DataError:  # whoever wants to use it is told; a list must not end at it
            continue
        version = str(folder.facts.get("version", ""))
        found.append(
            Entry(
                kind="venv",
                spec=version or "(stack)",
                ucx=version,
                identity=folder.content,
                where=str(folder.path),
                stack="" if version else folder.path.name.partition("-py")[0],
                size=folder.size,
            )
        )
    return found


def leftovers(paths: ImagePaths, needed: Needed) -> list[Leftover]:
    """Folders that no campaign runs on."""
    return [
        Leftover(one.where, one.size, functools.partial(shutil.rmtree, one.where))
        for one in entries(paths)
        if not needed.path(Path(one.where))
    ]
